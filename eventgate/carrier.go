package eventgate

import (
	"fmt"
	"strings"
)

// The names under which a token travels.
const (
	// Header is the name of a header, property or table entry of a message.
	Header = "x-consistency-token"
	// CloudEventsAttribute is the CloudEvents extension attribute. The
	// specification allows lower-case letters and digits, at most 20 of them. In the
	// binary mode of a transport it has the prefix of that: "ce-" for HTTP and
	// NATS, "ce_" for Kafka, "cloudEvents:" for AMQP.
	CloudEventsAttribute = "consistencytoken"
	// JSONField is the member of a JSON object, and of an [Envelope].
	JSONField = "consistency_token"
)

// Carrier is the place of the token in one message. It is used by one goroutine.
type Carrier interface {
	// Tokens returns the texts that are there, none when there is no token. What is
	// there and cannot be a token is returned as well: it must be refused and not be
	// missing.
	Tokens() []string
	// SetToken puts a text there in place of all that were there. The text consists
	// of letters, digits, ".", "-" and "_".
	SetToken(text string) error
}

// Envelope is the token of a message or of a job's arguments that are encoded as
// JSON. Embed it, and use [InString] on its field.
type Envelope struct {
	ConsistencyToken string `json:"consistency_token,omitempty"`
}

// InString is a token in a variable: a field of a struct, a column of an outbox.
// Empty means none.
func InString(p *string) Carrier { return inString{p} }

type inString struct{ p *string }

func (c inString) Tokens() []string {
	if *c.p == "" {
		return nil
	}
	return []string{*c.p}
}

func (c inString) SetToken(text string) error {
	*c.p = text
	return nil
}

// InMap is a token in a map of strings, under a name. Brokers and their clients
// change the case of names, so that is ignored when reading.
func InMap[M ~map[string]string](m M, name string) Carrier {
	return inMap[string]{m, name, func(v string) []string { return []string{v} }, func(text string) string { return text }}
}

// InMultiMap is a token in a map of lists, such as the headers of NATS and of HTTP,
// under a name. The case of names is ignored when reading.
func InMultiMap[M ~map[string][]string](m M, name string) Carrier {
	return inMap[[]string]{m, name, func(v []string) []string { return v }, func(text string) []string { return []string{text} }}
}

// InTable is a token in a map of values, such as a table of AMQP or the extensions
// of a CloudEvent in Go, under a name. The case of names is ignored when reading.
// A token is there as a string; byte slices are read as well.
func InTable[M ~map[string]any](m M, name string) Carrier {
	return inMap[any]{m, name, anyTexts, func(text string) any { return text }}
}

func anyTexts(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return []string{v}
	case []byte:
		return []string{string(v)}
	case fmt.Stringer:
		return []string{v.String()}
	default:
		return []string{fmt.Sprintf("a %T", v)} // no token, and not missing
	}
}

type inMap[V any] struct {
	m     map[string]V
	name  string
	texts func(V) []string
	value func(text string) V
}

func (c inMap[V]) Tokens() []string {
	var all []string
	for name, v := range c.m {
		if !strings.EqualFold(name, c.name) {
			continue
		}
		for _, text := range c.texts(v) {
			if text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}

func (c inMap[V]) SetToken(text string) error {
	if c.m == nil {
		return fmt.Errorf("eventgate: the map for %q is nil; make it first", c.name)
	}
	for name := range c.m {
		if strings.EqualFold(name, c.name) {
			delete(c.m, name)
		}
	}
	c.m[c.name] = c.value(text)
	return nil
}
