package pgcluster

import (
	"context"
	"fmt"
	"strings"
)

// SQL runs statements by psql, as the user postgres, and returns what they print:
// rows on lines, columns divided by |, without headings. Each statement is a
// transaction of its own; the first that fails ends it. An empty database means
// postgres. It is for setup and checks: each call starts a process and connects.
// Never pass it text from outside, psql's own commands work in it.
func (s *Server) SQL(ctx context.Context, database, sql string) (string, error) {
	out, err := s.cluster.run(ctx, sql, "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", s.DSN("", database), "-f", "-")
	if err != nil {
		return "", fmt.Errorf("%w\n\ton %s", err, s.Name)
	}
	return strings.TrimSuffix(out, "\n"), nil
}
