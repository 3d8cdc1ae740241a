package pgxgate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidegatedb/tidegate"
)

// Sizes of page headers (src/include/access/xlog_internal.h): the first page of
// a segment has the long one.
const (
	longPageHeader  = 40
	shortPageHeader = 24
)

// layout is how a server cuts its log.
type layout struct{ segment, block uint64 }

// normal returns the position without a page header that nothing stands behind.
// The insert position steps over the header of a new page before there is a
// record on it, while record ends, and so replay, stop at the page's start:
// unnormalised, such a position is reached only by the next record.
func (y layout) normal(lsn uint64) uint64 {
	if y.block == 0 || y.segment == 0 {
		return lsn
	}
	header := uint64(shortPageHeader)
	if lsn%y.segment < y.block {
		header = longPageHeader
	}
	if off := lsn % y.block; off <= header {
		return lsn - off
	}
	return lsn
}

func (y layout) at(lsn uint64) tidegate.Position { return tidegate.At(y.normal(lsn)) }

// parseLSN reads PostgreSQL's text form of a log position: two hexadecimal
// numbers of 1 to 8 digits.
func parseLSN(s string) (uint64, error) {
	hi, lo, ok := strings.Cut(s, "/")
	if ok && len(hi) >= 1 && len(hi) <= 8 && len(lo) >= 1 && len(lo) <= 8 {
		h, err1 := strconv.ParseUint(hi, 16, 32)
		l, err2 := strconv.ParseUint(lo, 16, 32)
		if err1 == nil && err2 == nil {
			return h<<32 | l, nil
		}
	}
	return 0, fmt.Errorf("pgxgate: %q is not a log position such as 16/B374D848", s)
}
