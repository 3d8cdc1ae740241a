package eventgate

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tidegatedb/tidegate"
)

// unsignedPrefix starts every token of a trusted broker.
const unsignedPrefix = "tgu1."

var maxUnsigned = len(unsignedPrefix) + base64.RawURLEncoding.EncodedLen(tidegate.MaxTokenBytes)

// text returns the token as it travels.
func (g *Gate) text(t tidegate.Token) string {
	if !g.cfg.TrustedBroker {
		return g.cfg.Keyring.Sign(t)
	}
	b, _ := t.AppendBinary(nil)
	return unsignedPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// parse reads what text wrote. Errors wrap [tidegate.ErrToken].
func (g *Gate) parse(text string) (tidegate.Token, error) {
	text, _, _ = strings.Cut(text, ";") // what httpgate sends has an ID behind it
	body, unsigned := strings.CutPrefix(text, unsignedPrefix)
	switch {
	case unsigned && !g.cfg.TrustedBroker:
		return tidegate.Token{}, fmt.Errorf("%w: it has none, and the broker is not declared to be trusted", tidegate.ErrTokenSignature)
	case unsigned && len(text) > maxUnsigned:
		return tidegate.Token{}, fmt.Errorf("%w: %d bytes, at most %d", tidegate.ErrTokenTooLarge, len(text), maxUnsigned)
	case unsigned:
		b, err := base64.RawURLEncoding.Strict().DecodeString(body)
		if err != nil || strings.ContainsAny(body, "\r\n") {
			return tidegate.Token{}, fmt.Errorf("%w: not base64", tidegate.ErrTokenMalformed)
		}
		return tidegate.ParseBinary(b)
	case g.cfg.Keyring == nil:
		return tidegate.Token{}, fmt.Errorf("%w: not a token of a trusted broker, and there is no key ring for another", tidegate.ErrTokenKey)
	default:
		return g.cfg.Keyring.Verify(text)
	}
}
