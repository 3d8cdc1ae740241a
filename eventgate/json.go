package eventgate

import (
	"encoding/json"
	"errors"
)

// errNotObject means bytes in which a member cannot be.
var errNotObject = errors.New("eventgate: not a JSON object")

// InJSON is a token in an encoded JSON object, as the member of that name: a
// payload that is passed on and not decoded, a CloudEvent in structured mode. All
// other members stay as they are, byte for byte. Only members of the object
// itself count, not those of objects inside.
func InJSON[R ~[]byte](object *R, name string) Carrier { return inJSON[R]{object, name} }

type inJSON[R ~[]byte] struct {
	object *R
	name   string
}

func (c inJSON[R]) Tokens() []string {
	spans, _, err := members(*c.object, c.name)
	if err != nil {
		// Whatever it was, it may have had a token.
		return []string{err.Error()}
	}
	var all []string
	for _, s := range spans {
		value := (*c.object)[s.from:s.to]
		var text *string
		switch err := json.Unmarshal(value, &text); {
		case err != nil:
			all = append(all, "no string") // no token, and not missing
		case text != nil && *text != "":
			all = append(all, *text)
		}
	}
	return all
}

func (c inJSON[R]) SetToken(text string) error {
	spans, body, err := members(*c.object, c.name)
	if err != nil {
		return err
	}
	value, err := json.Marshal(text)
	if err != nil {
		return err
	}
	in := *c.object
	out := make([]byte, 0, len(in)+len(c.name)+len(value)+8)
	if len(spans) == 0 {
		name, err := json.Marshal(c.name)
		if err != nil {
			return err
		}
		out = append(out, in[:body.from]...)
		out = append(append(append(out, name...), ':'), value...)
		if body.from < body.to {
			out = append(out, ',')
		}
		out = append(out, in[body.from:]...)
		*c.object = out
		return nil
	}
	from := 0
	for _, s := range spans { // a repeated member would leave it to each reader which one counts
		out = append(append(out, in[from:s.from]...), value...)
		from = s.to
	}
	out = append(out, in[from:]...)
	*c.object = out
	return nil
}

// span is in[from:to].
type span struct{ from, to int }

// members returns where the values of the members of that name are in a JSON
// object, and where its body is: between the braces, empty when there is no member.
func members(in []byte, name string) (values []span, body span, err error) {
	// What is valid can be walked through without looking for mistakes.
	if !json.Valid(in) {
		return nil, span{}, errNotObject
	}
	i := blank(in, 0)
	if in[i] != '{' {
		return nil, span{}, errNotObject
	}
	i++
	body.from = i
	i = blank(in, i)
	if in[i] == '}' {
		return nil, span{body.from, body.from}, nil
	}
	for {
		i = blank(in, i)
		key := span{i, text(in, i)}
		i = blank(in, key.to) + 1 // the colon
		value := span{from: blank(in, i)}
		value.to = skip(in, value.from)
		if named(in[key.from:key.to], name) {
			values = append(values, value)
		}
		i = blank(in, value.to)
		if in[i] == '}' {
			body.to = i
			return values, body, nil
		}
		i++ // the comma
	}
}

// named reports whether a key, with its quotes, is the name however it is escaped.
func named(key []byte, name string) bool {
	if string(key[1:len(key)-1]) == name {
		return true
	}
	var s string
	return json.Unmarshal(key, &s) == nil && s == name
}

// blank returns where the white space from i on ends.
func blank(in []byte, i int) int {
	for in[i] == ' ' || in[i] == '\t' || in[i] == '\r' || in[i] == '\n' {
		i++
	}
	return i
}

// text returns where the string that begins at i ends.
func text(in []byte, i int) int {
	for i++; in[i] != '"'; i++ {
		if in[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skip returns where the value that begins at i, inside of an object, ends.
func skip(in []byte, i int) int {
	depth := 0
	for {
		switch in[i] {
		case '"':
			i = text(in, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				if depth < 0 {
					return i // the end of the object around a number or a word
				}
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
}
