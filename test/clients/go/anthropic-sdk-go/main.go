// Messages with Anthropic's client for Go, its tool runner included.
package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/toolrunner"

	"sluice/clients/cases"
)

var (
	ctx      = context.Background()
	client   = connect(cases.APIKey)
	stranger = connect(cases.WrongKey)
)

func connect(key string) anthropic.Client {
	return anthropic.NewClient(
		option.WithBaseURL(cases.BaseURL), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func messageOf(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     "sandbox-chat",
		MaxTokens: 1000,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

func textOf(message *anthropic.Message) string {
	text := ""
	for _, block := range message.Content {
		text += block.Text
	}
	return text
}

func held() {
	answer, err := client.Messages.New(ctx, messageOf(cases.Exactly))
	cases.Check(err)
	cases.Assert(textOf(answer) == cases.Said, "answer: %s", answer.RawJSON())
	cases.Assert(answer.StopReason == anthropic.StopReasonEndTurn, "answer: %s", answer.RawJSON())
	cases.Assert(answer.Usage.OutputTokens > 0, "answer: %s", answer.RawJSON())
}

func streamed() {
	stream := client.Messages.NewStreaming(ctx, messageOf(cases.Exactly))
	var whole anthropic.Message
	var pieces []string
	for stream.Next() {
		event := stream.Current()
		cases.Check(whole.Accumulate(event))
		if delta, ok := event.AsAny().(anthropic.ContentBlockDeltaEvent); ok {
			pieces = append(pieces, delta.Delta.Text)
		}
	}
	cases.Check(stream.Err())
	cases.AssertSaid(pieces)
	cases.Assert(textOf(&whole) == cases.Said, "whole: %s", textOf(&whole))
}

func toolAsk() ([]anthropic.BetaTool, anthropic.BetaToolRunnerParams) {
	schema, err := json.Marshal(cases.MultiplySchema)
	cases.Check(err)
	multiply := func(_ context.Context, input json.RawMessage) (anthropic.BetaToolResultBlockParamContentUnion, error) {
		text := anthropic.BetaTextBlockParam{Text: cases.Multiply(string(input))}
		return anthropic.BetaToolResultBlockParamContentUnion{OfText: &text}, nil
	}
	tool, err := toolrunner.NewBetaToolFromBytes("multiply", "Multiplies two numbers", schema, multiply)
	cases.Check(err)
	question := anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(cases.Question))
	return []anthropic.BetaTool{tool}, anthropic.BetaToolRunnerParams{
		BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model:     "sandbox-chat",
			MaxTokens: 1000,
			Messages:  []anthropic.BetaMessageParam{question},
		},
		MaxIterations: 5,
	}
}

func betaTextOf(message *anthropic.BetaMessage) string {
	text := ""
	for _, block := range message.Content {
		text += block.Text
	}
	return text
}

func toolTurn() {
	tools, ask := toolAsk()
	last, err := client.Beta.Messages.NewToolRunner(tools, ask).RunToCompletion(ctx)
	cases.Check(err)
	cases.AssertMultiplied(betaTextOf(last))
}

func streamedToolTurn() {
	tools, ask := toolAsk()
	runner := client.Beta.Messages.NewToolRunnerStreaming(tools, ask)
	for events, err := range runner.AllStreaming(ctx) {
		cases.Check(err)
		for _, err := range events {
			cases.Check(err)
		}
	}
	cases.AssertMultiplied(betaTextOf(runner.LastMessage()))
}

func structuredOutput() {
	ask := messageOf("Good morning")
	ask.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: cases.ForecastSchema}
	answer, err := client.Messages.New(ctx, ask)
	cases.Check(err)
	cases.AssertForecast(textOf(answer))
}

func assertError(err error, status int, kind string) {
	var failed *anthropic.Error
	cases.Assert(errors.As(err, &failed), "error: %v", err)
	cases.Assert(failed.StatusCode == status && string(failed.Type()) == kind, "error: %v", failed)
}

func fails() {
	ask := messageOf(cases.Exactly)
	ask.Model = "no-such-model"
	_, err := client.Messages.New(ctx, ask)
	assertError(err, 404, "not_found_error")
	stream := stranger.Messages.NewStreaming(ctx, messageOf(cases.Exactly))
	cases.Assert(!stream.Next(), "the stream of a stranger has no event")
	assertError(stream.Err(), 401, "authentication_error")
}

func main() {
	cases.RunAll("messages",
		cases.Case{Kind: "held", Run: held},
		cases.Case{Kind: "streamed", Run: streamed},
		cases.Case{Kind: "tool turn", Run: toolTurn},
		cases.Case{Kind: "streamed tool turn", Run: streamedToolTurn},
		cases.Case{Kind: "structured output", Run: structuredOutput},
		cases.Case{Kind: "error", Run: fails},
	)
}
