package pgxgate_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

// A row can be scanned once: what it was read with serves other reads from then on.
func TestRowIsScannedOnce(t *testing.T) {
	db := open(t, cluster(t))
	ctx, _ := inSession(t)
	const q = "select k from kv where k = $1"
	first := db.Read(tidegate.Causal).QueryRow(ctx, q, 1)
	var got int64
	if err := first.Scan(&got); err != nil || got != 1 {
		t.Fatalf("%d, %v", got, err)
	}
	second := db.Read(tidegate.Causal).QueryRow(ctx, q, 2)
	if err := first.Scan(&got); err == nil {
		t.Errorf("the first row was scanned again and gave %d", got)
	}
	if err := second.Scan(&got); err != nil || got != 2 {
		t.Errorf("the second row: %d, %v", got, err)
	}
}
