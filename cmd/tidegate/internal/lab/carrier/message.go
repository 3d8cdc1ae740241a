package carrier

import (
	"encoding/json"
	"fmt"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// eventType is the CloudEvents type of the lab's events.
const eventType = "lab.row.written"

// message is an event as CloudEvents have it in structured mode. The token is an
// extension attribute, which eventgate adds to the encoded object.
type message struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	DataContentType string `json:"datacontenttype"`
	Data            change `json:"data"`
}

// change says what was written.
type change struct {
	Row     int64 `json:"row"`
	Version int64 `json:"version"`
}

// encode returns the event that tells of a row's new version.
func encode(instance int, row record.Row) ([]byte, error) {
	return json.Marshal(message{
		SpecVersion: "1.0", ID: fmt.Sprintf("%d-%d", row.Key, row.Version), Source: fmt.Sprintf("/lab/instance/%d", instance),
		Type: eventType, DataContentType: "application/json", Data: change{row.Key, row.Version},
	})
}

// decode returns what an event tells of.
func decode(text []byte) (record.Row, error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return record.Row{}, err
	}
	if m.SpecVersion != "1.0" || m.Type != eventType {
		return record.Row{}, fmt.Errorf("an event of version %q and type %q is none of the lab's", m.SpecVersion, m.Type)
	}
	return record.Row{Key: m.Data.Row, Version: m.Data.Version}, nil
}
