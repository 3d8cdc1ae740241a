package eventgate_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/eventgate"
)

// record is a message as clients of Kafka have it.
type record struct{ headers []header }

type header struct {
	key   string
	value []byte
}

func (r *record) Tokens() (all []string) {
	for _, h := range r.headers {
		if h.key == eventgate.Header {
			all = append(all, string(h.value))
		}
	}
	return all
}

func (r *record) SetToken(text string) error {
	r.headers = slices.DeleteFunc(r.headers, func(h header) bool { return h.key == eventgate.Header })
	r.headers = append(r.headers, header{eventgate.Header, []byte(text)})
	return nil
}

type table map[string]any

func TestCarriers(t *testing.T) {
	t.Parallel()
	text, raw := "before", json.RawMessage(`{"a":1}`)
	amqp := table{"X-Consistency-Token": []byte("before"), "other": 7}
	nats := map[string][]string{"X-Consistency-Token": {"before", "", "again"}, "Other": {"x"}}
	plain := map[string]string{"x-Consistency-token": "before", "other": "x", "empty": ""}
	for _, c := range []struct {
		name   string
		c      eventgate.Carrier
		before []string
	}{
		{"string", eventgate.InString(&text), []string{"before"}},
		{"map", eventgate.InMap(plain, eventgate.Header), []string{"before"}},
		{"lists", eventgate.InMultiMap(nats, eventgate.Header), []string{"before", "again"}},
		{"values", eventgate.InTable(amqp, eventgate.Header), []string{"before"}},
		{"JSON", eventgate.InJSON(&raw, eventgate.JSONField), nil},
		{"Kafka", &record{[]header{{"other", []byte("x")}}}, nil},
	} {
		if got := c.c.Tokens(); !slices.Equal(got, c.before) {
			t.Errorf("%s: %q before", c.name, got)
		}
		for _, text := range []string{"tg1.one", "tg1.two-_"} {
			if err := c.c.SetToken(text); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if got := c.c.Tokens(); !slices.Equal(got, []string{text}) {
				t.Errorf("%s: %q, want %q", c.name, got, text)
			}
		}
	}
	if len(plain) != 3 || len(nats) != 2 || !maps.Equal(amqp, table{eventgate.Header: "tg1.two-_", "other": 7}) {
		t.Error(plain, nats, amqp)
	}
}

// What is there and is no token is refused; only what is not there is missing.
func TestWhatIsNoTokenIsNotMissing(t *testing.T) {
	t.Parallel()
	number := json.RawMessage(`{"consistency_token": 12}`)
	array := json.RawMessage(`["consistency_token"]`)
	broken := json.RawMessage(`{"consistency_token": `)
	for _, c := range []struct {
		name string
		c    eventgate.Carrier
		n    int
	}{
		{"a number in a table", eventgate.InTable(table{eventgate.Header: 12}, eventgate.Header), 1},
		{"nil in a table", eventgate.InTable(table{eventgate.Header: nil}, eventgate.Header), 0},
		{"a number in JSON", eventgate.InJSON(&number, eventgate.JSONField), 1},
		{"an array", eventgate.InJSON(&array, eventgate.JSONField), 1},
		{"broken JSON", eventgate.InJSON(&broken, eventgate.JSONField), 1},
		{"a nil map", eventgate.InMap(map[string]string(nil), eventgate.Header), 0},
	} {
		if got := c.c.Tokens(); len(got) != c.n {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	for _, c := range []eventgate.Carrier{eventgate.InJSON(&array, "x"), eventgate.InJSON(&broken, "x"), eventgate.InMap(map[string]string(nil), "x")} {
		if c.SetToken("tg1.x") == nil {
			t.Errorf("%#v took a token", c)
		}
	}
}

func TestCloudEventsAttributeIsLawful(t *testing.T) {
	t.Parallel()
	if len(eventgate.CloudEventsAttribute) > 20 || strings.Trim(eventgate.CloudEventsAttribute, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		t.Error(eventgate.CloudEventsAttribute)
	}
}

func TestJSONKeepsTheRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want, tokens string }{
		{`{}`, `{"consistency_token":"T"}`, ""},
		{" {\n} \n", " {\"consistency_token\":\"T\"\n} \n", ""},
		{`{"a":1}`, `{"consistency_token":"T","a":1}`, ""},
		{"{ \"n\": 1.0e+2, \"big\": 12345678901234567890 }", "{\"consistency_token\":\"T\", \"n\": 1.0e+2, \"big\": 12345678901234567890 }", ""},
		{`{"consistency_token":"old","a":[1,{"b":"}"}]}`, `{"consistency_token":"T","a":[1,{"b":"}"}]}`, "old"},
		{`{"a":"\"}","consistency_token" : null ,"z":true}`, `{"a":"\"}","consistency_token" : "T" ,"z":true}`, ""},
		{`{"consistency\u005ftoken":"old"}`, `{"consistency\u005ftoken":"T"}`, "old"},
		{`{"consistency_token":"1","b":2,"consistency_token":"3"}`, `{"consistency_token":"T","b":2,"consistency_token":"T"}`, "1 3"},
		{`{"data":{"consistency_token":"inner"},"x":-1}`, `{"consistency_token":"T","data":{"consistency_token":"inner"},"x":-1}`, ""},
		{`{"x":[[],{}],"consistency_token":""}`, `{"x":[[],{}],"consistency_token":"T"}`, ""},
		{`{"a":1,"consistency_token":7}`, `{"a":1,"consistency_token":"T"}`, "no string"},
		{`{"a":{"b":{}},"c":[{"d":"\\"}],"consistency_token":{"x":[1]}}`, `{"a":{"b":{}},"c":[{"d":"\\"}],"consistency_token":"T"}`, "no string"},
	} {
		raw := []byte(c.in)
		got := eventgate.InJSON(&raw, eventgate.JSONField)
		if s := strings.Join(got.Tokens(), " "); s != c.tokens {
			t.Errorf("%s: tokens %q, want %q", c.in, s, c.tokens)
		}
		if err := got.SetToken("T"); err != nil || string(raw) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.in, err, raw, c.want)
		}
	}
}

func TestEnvelopeIsTheSameField(t *testing.T) {
	t.Parallel()
	type args struct {
		eventgate.Envelope
		User int `json:"user"`
	}
	a := args{User: 7}
	if err := eventgate.InString(&a.ConsistencyToken).SetToken("tg1.x"); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if got := eventgate.InJSON(&raw, eventgate.JSONField).Tokens(); !slices.Equal(got, []string{"tg1.x"}) {
		t.Errorf("%s: %q", raw, got)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":{"b":[1,"x"]}, "consistency_token":"t"}`, ` {"consistency_token":1e5}`, `[]`, `{"a":`, `"x"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		raw := bytes.Clone(in)
		c := eventgate.InJSON(&raw, eventgate.JSONField)
		had := c.Tokens()
		if err := c.SetToken("tg1.new"); err != nil {
			if !bytes.Equal(raw, in) || len(had) != 1 {
				t.Fatalf("%q: %v, now %q", in, err, raw)
			}
			return
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(in, &before); err != nil {
			t.Fatalf("%q was accepted: %v", in, err)
		}
		if err := json.Unmarshal(raw, &after); err != nil {
			t.Fatalf("%q became %q: %v", in, raw, err)
		}
		if string(after[eventgate.JSONField]) != `"tg1.new"` {
			t.Fatalf("%q became %q", in, raw)
		}
		delete(before, eventgate.JSONField)
		delete(after, eventgate.JSONField)
		if !maps.EqualFunc(before, after, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("%q became %q", in, raw)
		}
		if got := c.Tokens(); len(got) == 0 || slices.Max(got) != "tg1.new" || slices.Min(got) != "tg1.new" {
			t.Fatalf("%q: %q", raw, got)
		}
	})
}
