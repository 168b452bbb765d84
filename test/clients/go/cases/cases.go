// Package cases holds what the Go programs share: what they ask, where, and how each tells what came of its cases.
package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

var (
	// BaseURL is where the gateway is, without /v1.
	BaseURL = os.Getenv("SLUICE_BASE_URL")
	// APIKey is a key of the gateway's.
	APIKey = os.Getenv("SLUICE_API_KEY")
)

const (
	// WrongKey is a key that the gateway does not know.
	WrongKey = "sk-sluice-wrong"
	// Said is what the sandbox answers to Exactly, word for word.
	Said = "Hello from Sluice"
	// Exactly is the directive that has the sandbox say Said.
	Exactly = "Reply with exactly: " + Said
	// Question has the sandbox call the tool multiply.
	Question = `TOOL:multiply {"one":6,"other":7}`
)

// MultiplyProperties are the arguments of the tool multiply.
var MultiplyProperties = map[string]any{
	"one":   map[string]any{"type": "number"},
	"other": map[string]any{"type": "number"},
}

// MultiplySchema is the whole schema of its arguments.
var MultiplySchema = map[string]any{
	"type":                 "object",
	"properties":           MultiplyProperties,
	"required":             []string{"one", "other"},
	"additionalProperties": false,
}

// ForecastSchema is a form that a structured answer has.
var ForecastSchema = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"city":    map[string]any{"type": "string"},
		"degrees": map[string]any{"type": "number"},
		"sky":     map[string]any{"type": "string", "enum": []string{"clear", "grey"}},
	},
	"required":             []string{"city", "degrees", "sky"},
	"additionalProperties": false,
}

// Factors are the arguments of the tool multiply, as a client reads them.
type Factors struct {
	One   int `json:"one"`
	Other int `json:"other"`
}

// Multiply is what the tool does.
func Multiply(arguments string) string {
	var factors Factors
	Check(json.Unmarshal([]byte(arguments), &factors))
	return fmt.Sprint(factors.One * factors.Other)
}

// Case is one thing that a client is tried at.
type Case struct {
	Kind string
	Run  func()
}

// RunAll runs the cases of one API, one after another: each prints a line of JSON.
func RunAll(api string, all ...Case) {
	for _, one := range all {
		detail := runOne(one.Run)
		line, err := json.Marshal(struct {
			Name   string `json:"name"`
			Ok     bool   `json:"ok"`
			Detail string `json:"detail"`
		}{api + ", " + one.Kind, detail == "", detail})
		Check(err)
		fmt.Println(string(line))
	}
}

func runOne(run func()) (detail string) {
	defer func() {
		if failed := recover(); failed != nil {
			detail = fmt.Sprint(failed)
		}
	}()
	run()
	return ""
}

// Check panics with an error that is none of what the case expects.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// Assert panics where a case fails.
func Assert(holds bool, format string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

// AssertSaid checks a text that came in pieces.
func AssertSaid(pieces []string) {
	texts := slices.DeleteFunc(slices.Clone(pieces), func(piece string) bool { return piece == "" })
	Assert(strings.Join(texts, "") == Said, "pieces: %q", texts)
	Assert(len(texts) > 1, "the text comes in more than one piece: %q", texts)
}

// AssertMultiplied checks what is said of the tool's result.
func AssertMultiplied(text string) {
	Assert(strings.Contains(text, "42"), "text: %q", text)
}

// AssertForecast checks a structured answer.
func AssertForecast(text string) {
	var forecast struct {
		City    *string  `json:"city"`
		Degrees *float64 `json:"degrees"`
		Sky     string   `json:"sky"`
	}
	Check(json.Unmarshal([]byte(text), &forecast))
	Assert(forecast.City != nil && forecast.Degrees != nil, "forecast: %s", text)
	Assert(forecast.Sky == "clear" || forecast.Sky == "grey", "forecast: %s", text)
}
