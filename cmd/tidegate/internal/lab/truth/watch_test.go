package truth_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/truth"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// The watch tells what a server shows and when, and goes on after a crash.
func TestWatch(t *testing.T) {
	t.Parallel()
	cluster := pgcluster.ForTest(t, pgcluster.Config{})
	server := cluster.Primary()
	sql := func(s string) string {
		out, err := server.SQL(t.Context(), "", s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	sql("create table r (k bigint, v bigint); insert into r values (0, 1), (2, 5), (9, 9); create sequence looks")
	// wait returns when the server has been looked at so often from now on.
	wait := func(more int64) {
		from, _ := strconv.ParseInt(sql("select last_value from looks"), 10, 64)
		for sql(fmt.Sprintf("select last_value >= %d from looks", from+more)) != "t" {
		}
	}

	start := time.Now()
	w := truth.Start(t.Context(), start, []string{server.DSN("", "")}, "select k, v from r, (select nextval('looks')) counted", 3)
	wait(10)
	sql("update r set v = 2 where k = 0")
	updated := time.Since(start)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Since(start)
	wait(10)
	looks := w.Stop()[0]

	before, after := 0, 0
	last := time.Duration(-1)
	for _, l := range looks {
		if l.Began <= last || l.Ended < l.Began {
			t.Fatalf("a look from %v to %v after one that ended %v", l.Began, l.Ended, last)
		}
		last = l.Ended
		if len(l.Versions) != 3 || l.Versions[1] != record.Absent || l.Versions[2] != 5 {
			t.Fatalf("rows 0 to 2 are %v", l.Versions)
		}
		if l.Began > updated && l.Versions[0] != 2 {
			t.Fatalf("row 0 has version %d after the update", l.Versions[0])
		}
		if l.Ended < updated {
			before++
		}
		if l.Began > up {
			after++
		}
	}
	if before < 10 || after < 8 {
		t.Errorf("%d looks before the crash, %d after it", before, after)
	}
}
