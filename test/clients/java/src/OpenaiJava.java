import com.fasterxml.jackson.annotation.JsonClassDescription;
import com.fasterxml.jackson.annotation.JsonTypeName;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.NotFoundException;
import com.openai.errors.UnauthorizedException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.helpers.ResponseAccumulator;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionMessage;
import com.openai.models.chat.completions.ChatCompletionMessageFunctionToolCall;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponseCreateParams;
import com.openai.models.responses.ResponseFunctionToolCall;
import com.openai.models.responses.ResponseInputItem;
import com.openai.models.responses.ResponseStreamEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Chat completions and responses with OpenAI's client for Java. */
final class OpenaiJava {
  private static final OpenAIClient CLIENT = connect(Cases.API_KEY);
  private static final OpenAIClient STRANGER = connect(Cases.WRONG_KEY);

  /** The tool: its name is `multiply`. */
  @JsonTypeName("multiply")
  @JsonClassDescription("Multiplies two numbers")
  static class Multiply {
    public int one;
    public int other;

    String result() {
      return String.valueOf(one * other);
    }
  }

  enum Sky {
    clear,
    grey
  }

  static class Forecast {
    public String city;
    public double degrees;
    public Sky sky;
  }

  private static OpenAIClient connect(String key) {
    return OpenAIOkHttpClient.builder().baseUrl(Cases.BASE_URL + "/v1").apiKey(key).maxRetries(0).build();
  }

  public static void main(String[] arguments) throws Exception {
    testChat();
    testResponses("sandbox-chat");
    testResponses("sandbox-responses");
    // Threads of its connections would keep the program for a minute.
    System.exit(0);
  }

  private static ChatCompletionCreateParams.Builder chat(String model, String text) {
    return ChatCompletionCreateParams.builder().model(model).addUserMessage(text);
  }

  private static void testChat() throws Exception {
    String model = "sandbox-chat";
    Cases.test(
        "chat, held",
        () -> {
          ChatCompletion answer = CLIENT.chat().completions().create(chat(model, Cases.EXACTLY).build());
          answer.validate();
          Cases.check(answer.choices().get(0).message().content().get().equals(Cases.SAID), answer);
          Cases.check(answer.usage().get().completionTokens() > 0, answer);
        });
    Cases.test(
        "chat, streamed",
        () -> {
          List<String> pieces = new ArrayList<>();
          ChatCompletion whole = stream(chat(model, Cases.EXACTLY), pieces);
          Cases.checkSaid(pieces);
          Cases.check(whole.usage().get().completionTokens() > 0, whole);
        });
    Cases.test(
        "chat, tool turn",
        () -> {
          ChatCompletionCreateParams.Builder ask = chat(model, Cases.question("multiply")).addTool(Multiply.class);
          ChatCompletionMessage asked = stream(ask, new ArrayList<>()).choices().get(0).message();
          ChatCompletionMessageFunctionToolCall call = asked.toolCalls().get().get(0).asFunction();
          ask.addMessage(asked);
          ask.addMessage(
              ChatCompletionToolMessageParam.builder()
                  .toolCallId(call.id())
                  .content(call.function().arguments(Multiply.class).result())
                  .build());
          ChatCompletion answer = CLIENT.chat().completions().create(ask.build());
          Cases.checkMultiplied(answer.choices().get(0).message().content().get());
        });
    Cases.test(
        "chat, structured output",
        () -> {
          Forecast forecast =
              CLIENT
                  .chat()
                  .completions()
                  .create(chat(model, "Good morning").responseFormat(Forecast.class).build())
                  .choices()
                  .get(0)
                  .message()
                  .content()
                  .get();
          Cases.checkForecast(forecast.city, forecast.degrees, forecast.sky);
        });
    Cases.test(
        "chat, error",
        () -> {
          ChatCompletionCreateParams unknown = chat("no-such-model", Cases.EXACTLY).build();
          NotFoundException missing =
              Cases.failure(NotFoundException.class, () -> CLIENT.chat().completions().create(unknown));
          Cases.check(missing.code().get().equals("model_not_found"), missing);
          ChatCompletionCreateParams ask = chat(model, Cases.EXACTLY).build();
          Cases.failure(UnauthorizedException.class, () -> STRANGER.chat().completions().createStreaming(ask));
        });
  }

  /** Reads a whole stream, as the client's own accumulator does. */
  private static ChatCompletion stream(ChatCompletionCreateParams.Builder ask, List<String> pieces) {
    ChatCompletionAccumulator whole = ChatCompletionAccumulator.create();
    ChatCompletionCreateParams params =
        ask.streamOptions(ChatCompletionStreamOptions.builder().includeUsage(true).build()).build();
    try (StreamResponse<ChatCompletionChunk> stream = CLIENT.chat().completions().createStreaming(params)) {
      stream.stream()
          .peek(chunk -> chunk.validate())
          .peek(whole::accumulate)
          .flatMap(chunk -> chunk.choices().stream())
          .forEach(choice -> choice.delta().content().ifPresent(pieces::add));
    }
    ask.streamOptions(java.util.Optional.empty());
    return whole.chatCompletion();
  }

  private static ResponseCreateParams.Builder response(String model, String text) {
    return ResponseCreateParams.builder().model(model).input(text);
  }

  private static String textOf(Response response) {
    return response.output().stream()
        .flatMap(item -> item.message().stream())
        .flatMap(message -> message.content().stream())
        .flatMap(content -> content.outputText().stream())
        .map(text -> text.text())
        .collect(Collectors.joining());
  }

  private static void testResponses(String model) throws Exception {
    String api = "responses of " + model;
    Cases.test(
        api + ", held",
        () -> {
          Response answer = CLIENT.responses().create(response(model, Cases.EXACTLY).build());
          answer.validate();
          Cases.check(textOf(answer).equals(Cases.SAID), answer);
          Cases.check(answer.usage().get().outputTokens() > 0, answer);
        });
    Cases.test(
        api + ", streamed",
        () -> {
          List<String> pieces = new ArrayList<>();
          ResponseAccumulator whole = ResponseAccumulator.create();
          ResponseCreateParams ask = response(model, Cases.EXACTLY).build();
          try (StreamResponse<ResponseStreamEvent> stream = CLIENT.responses().createStreaming(ask)) {
            stream.stream()
                .peek(event -> event.validate())
                .peek(whole::accumulate)
                .flatMap(event -> event.outputTextDelta().stream())
                .forEach(delta -> pieces.add(delta.delta()));
          }
          Cases.checkSaid(pieces);
          Cases.check(textOf(whole.response()).equals(Cases.SAID), whole.response());
        });
    Cases.test(
        api + ", tool turn",
        () -> {
          ResponseCreateParams.Builder ask = response(model, Cases.question("multiply")).addTool(Multiply.class);
          Response first = CLIENT.responses().create(ask.build());
          ResponseFunctionToolCall call =
              first.output().stream().flatMap(item -> item.functionCall().stream()).findFirst().orElseThrow();
          ResponseInputItem result =
              ResponseInputItem.ofFunctionCallOutput(
                  ResponseInputItem.FunctionCallOutput.builder()
                      .callId(call.callId())
                      .output(call.arguments(Multiply.class).result())
                      .build());
          ask.previousResponseId(first.id()).inputOfResponse(List.of(result));
          Cases.checkMultiplied(textOf(CLIENT.responses().create(ask.build())));
        });
    Cases.test(
        api + ", structured output",
        () -> {
          Forecast forecast =
              CLIENT.responses().create(response(model, "Good morning").text(Forecast.class).build()).output().stream()
                  .flatMap(item -> item.message().stream())
                  .flatMap(message -> message.content().stream())
                  .flatMap(content -> content.outputText().stream())
                  .findFirst()
                  .orElseThrow();
          Cases.checkForecast(forecast.city, forecast.degrees, forecast.sky);
        });
    Cases.test(
        api + ", error",
        () -> {
          ResponseCreateParams unknown = response("no-such-model", Cases.EXACTLY).build();
          NotFoundException missing =
              Cases.failure(NotFoundException.class, () -> CLIENT.responses().create(unknown));
          Cases.check(missing.code().get().equals("model_not_found"), missing);
          ResponseCreateParams ask = response(model, Cases.EXACTLY).build();
          Cases.failure(UnauthorizedException.class, () -> STRANGER.responses().create(ask));
        });
  }
}
