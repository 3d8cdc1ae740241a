package tidegate_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

func BenchmarkTokenAppendBinary(b *testing.B) {
	for name, token := range benchTokens() {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, tidegate.MaxTokenBytes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := token.AppendBinary(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseBinary(b *testing.B) {
	for name, token := range benchTokens() {
		b.Run(name, func(b *testing.B) {
			wire := encode(b, token)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tidegate.ParseBinary(wire); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkKeyringSign(b *testing.B) {
	for name, token := range benchTokens() {
		b.Run(name, func(b *testing.B) {
			k := newKeyring(b, keyA)
			b.ReportAllocs()
			for b.Loop() {
				k.Sign(token)
			}
		})
	}
}

func BenchmarkKeyringVerify(b *testing.B) {
	for name, token := range benchTokens() {
		b.Run(name, func(b *testing.B) {
			k := newKeyring(b, keyA)
			signed := sign(b, k, token)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Verify(signed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a middleware pays for each request, beside the signature.
func BenchmarkSession(b *testing.B) {
	token := typical(7)
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = tidegate.NewSession(token)
		}
	})
	b.Run("token", func(b *testing.B) {
		s := tidegate.NewSession(token)
		s.Ledger("main", open("main"))
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Token()
		}
	})
	b.Run("ledger", func(b *testing.B) {
		s := tidegate.NewSession(token)
		s.Ledger("main", open("main"))
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Ledger("main", nil)
		}
	})
}

func benchTokens() map[string]tidegate.Token {
	return map[string]tidegate.Token{"written": typical(), "seen": typical(7), "largest": largest()}
}
