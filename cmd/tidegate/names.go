package main

import "github.com/alecthomas/kong"

// names is the value of a flag that names several things, with commas between
// them. Nil means that the flag was not given; given as nothing it is empty, which
// is a mistake and not the wish for what is usual.
type names []string

// Decode implements kong.MapperValue.
func (n *names) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("names", &text); err != nil {
		return err
	}
	if *n == nil {
		*n = names{}
	}
	*n = append(*n, kong.SplitEscaped(text, ',')...)
	return nil
}
