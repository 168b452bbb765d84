// Chat completions and responses with OpenAI's client for Go.
package main

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"sluice/clients/cases"
)

var (
	ctx      = context.Background()
	client   = connect(cases.APIKey)
	stranger = connect(cases.WrongKey)
)

func connect(key string) openai.Client {
	return openai.NewClient(
		option.WithBaseURL(cases.BaseURL+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func assertError(err error, status int, code string) {
	var failed *openai.Error
	cases.Assert(errors.As(err, &failed), "error: %v", err)
	cases.Assert(failed.StatusCode == status && failed.Code == code, "error: %d %s", failed.StatusCode, failed.Code)
}

func chatOf(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    "sandbox-chat",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

func chatHeld() {
	answer, err := client.Chat.Completions.New(ctx, chatOf(cases.Exactly))
	cases.Check(err)
	cases.Assert(answer.Choices[0].Message.Content == cases.Said, "answer: %s", answer.RawJSON())
	cases.Assert(answer.Usage.CompletionTokens > 0, "answer: %s", answer.RawJSON())
}

func streamChat(ask openai.ChatCompletionNewParams) (openai.ChatCompletionAccumulator, []string) {
	ask.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(ctx, ask)
	var whole openai.ChatCompletionAccumulator
	var pieces []string
	for stream.Next() {
		chunk := stream.Current()
		cases.Assert(whole.AddChunk(chunk), "the chunk continues the stream: %s", chunk.RawJSON())
		for _, choice := range chunk.Choices {
			pieces = append(pieces, choice.Delta.Content)
		}
	}
	cases.Check(stream.Err())
	return whole, pieces
}

func chatStreamed() {
	whole, pieces := streamChat(chatOf(cases.Exactly))
	cases.AssertSaid(pieces)
	cases.Assert(whole.Usage.CompletionTokens > 0, "usage: %v", whole.Usage)
}

func chatToolTurn() {
	ask := chatOf(cases.Question)
	ask.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:        "multiply",
		Description: openai.String("Multiplies two numbers"),
		Parameters:  cases.MultiplySchema,
		Strict:      openai.Bool(true),
	})}
	first, _ := streamChat(ask)
	asked := first.Choices[0].Message
	cases.Assert(len(asked.ToolCalls) == 1, "calls: %v", asked.ToolCalls)
	call := asked.ToolCalls[0]
	result := openai.ToolMessage(cases.Multiply(call.Function.Arguments), call.ID)
	ask.Messages = append(ask.Messages, asked.ToParam(), result)
	answer, err := client.Chat.Completions.New(ctx, ask)
	cases.Check(err)
	cases.AssertMultiplied(answer.Choices[0].Message.Content)
}

func chatStructured() {
	ask := chatOf("Good morning")
	ask.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "forecast", Strict: openai.Bool(true), Schema: cases.ForecastSchema,
		},
	}
	answer, err := client.Chat.Completions.New(ctx, ask)
	cases.Check(err)
	cases.AssertForecast(answer.Choices[0].Message.Content)
}

func chatError() {
	ask := chatOf(cases.Exactly)
	ask.Model = "no-such-model"
	_, err := client.Chat.Completions.New(ctx, ask)
	assertError(err, 404, "model_not_found")
	stream := stranger.Chat.Completions.NewStreaming(ctx, chatOf(cases.Exactly))
	cases.Assert(!stream.Next(), "the stream of a stranger has no event")
	assertError(stream.Err(), 401, "invalid_api_key")
}

func responseOf(model, text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)},
	}
}

func runResponses(model string) {
	create := func(ask responses.ResponseNewParams) *responses.Response {
		answer, err := client.Responses.New(ctx, ask)
		cases.Check(err)
		return answer
	}
	held := func() {
		answer := create(responseOf(model, cases.Exactly))
		cases.Assert(answer.OutputText() == cases.Said, "answer: %s", answer.RawJSON())
		cases.Assert(answer.Usage.OutputTokens > 0, "answer: %s", answer.RawJSON())
	}
	streamed := func() {
		stream := client.Responses.NewStreaming(ctx, responseOf(model, cases.Exactly))
		var pieces []string
		last := ""
		for stream.Next() {
			event := stream.Current()
			last = event.Type
			if event.Type == "response.output_text.delta" {
				pieces = append(pieces, event.AsResponseOutputTextDelta().Delta)
			}
		}
		cases.Check(stream.Err())
		cases.AssertSaid(pieces)
		cases.Assert(last == "response.completed", "last: %s", last)
	}
	toolTurn := func() {
		ask := responseOf(model, cases.Question)
		ask.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("multiply", cases.MultiplySchema, true)}
		first := create(ask)
		for _, item := range first.Output {
			if item.Type != "function_call" {
				continue
			}
			call := item.AsFunctionCall()
			result := responses.ResponseInputItemParamOfFunctionCallOutput(cases.Multiply(call.Arguments))
			result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
			ask.PreviousResponseID = openai.String(first.ID)
			ask.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{result}}
			cases.AssertMultiplied(create(ask).OutputText())
			return
		}
		cases.Assert(false, "no call: %s", first.RawJSON())
	}
	structured := func() {
		ask := responseOf(model, "Good morning")
		ask.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("forecast", cases.ForecastSchema)
		ask.Text.Format.OfJSONSchema.Strict = openai.Bool(true)
		cases.AssertForecast(create(ask).OutputText())
	}
	fails := func() {
		_, err := client.Responses.New(ctx, responseOf("no-such-model", cases.Exactly))
		assertError(err, 404, "model_not_found")
		_, err = stranger.Responses.New(ctx, responseOf(model, cases.Exactly))
		assertError(err, 401, "invalid_api_key")
	}
	cases.RunAll("responses of "+model,
		cases.Case{Kind: "held", Run: held},
		cases.Case{Kind: "streamed", Run: streamed},
		cases.Case{Kind: "tool turn", Run: toolTurn},
		cases.Case{Kind: "structured output", Run: structured},
		cases.Case{Kind: "error", Run: fails},
	)
}

func main() {
	cases.RunAll("chat",
		cases.Case{Kind: "held", Run: chatHeld},
		cases.Case{Kind: "streamed", Run: chatStreamed},
		cases.Case{Kind: "tool turn", Run: chatToolTurn},
		cases.Case{Kind: "structured output", Run: chatStructured},
		cases.Case{Kind: "error", Run: chatError},
	)
	runResponses("sandbox-chat")
	runResponses("sandbox-responses")
}
