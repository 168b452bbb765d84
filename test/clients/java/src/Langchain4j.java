import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.exception.AuthenticationException;
import dev.langchain4j.exception.ModelNotFoundException;
import dev.langchain4j.model.chat.Capability;
import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.StreamingChatModel;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiResponsesChatModel;
import dev.langchain4j.model.openai.OpenAiResponsesStreamingChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.service.AiServices;
import dev.langchain4j.service.TokenStream;
import dev.langchain4j.service.UserMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;

/** langchain4j over chat completions and over responses. */
final class Langchain4j {
  private static final String URL = Cases.BASE_URL + "/v1";

  /** The tool. */
  static class Calculator {
    @Tool(name = "multiply", value = "Multiplies two numbers")
    String multiply(@P("The one") int one, @P("The other") int other) {
      return String.valueOf(one * other);
    }
  }

  enum Sky {
    clear,
    grey
  }

  record Forecast(String city, double degrees, Sky sky) {}

  interface Assistant {
    String ask(@UserMessage String text);
  }

  interface StreamingAssistant {
    TokenStream ask(@UserMessage String text);
  }

  interface Forecaster {
    Forecast forecast(@UserMessage String text);
  }

  public static void main(String[] arguments) throws Exception {
    test(
        "chat",
        "sandbox-chat",
        (model, key) ->
            OpenAiChatModel.builder()
                .baseUrl(URL)
                .apiKey(key)
                .modelName(model)
                .maxRetries(0)
                .supportedCapabilities(Capability.RESPONSE_FORMAT_JSON_SCHEMA)
                .strictJsonSchema(true)
                .build(),
        (model, key) -> OpenAiStreamingChatModel.builder().baseUrl(URL).apiKey(key).modelName(model).build());
    Cases.test("chat, broken stream", Langchain4j::breakStream);
    for (String name : List.of("sandbox-chat", "sandbox-responses")) {
      test(
          "responses of " + name,
          name,
          (model, key) ->
              OpenAiResponsesChatModel.builder().baseUrl(URL).apiKey(key).modelName(model).build(),
          (model, key) ->
              OpenAiResponsesStreamingChatModel.builder().baseUrl(URL).apiKey(key).modelName(model).build());
    }
    System.exit(0);
  }

  /** A streamed answer: its pieces, and what it adds up to. */
  private static ChatResponse stream(TokenStream stream, List<String> pieces) throws Exception {
    CompletableFuture<ChatResponse> whole = new CompletableFuture<>();
    stream
        .onPartialResponse(pieces::add)
        .onCompleteResponse(whole::complete)
        .onError(whole::completeExceptionally)
        .start();
    return whole.get(60, TimeUnit.SECONDS);
  }

  /** A stream that breaks off is no whole answer. */
  private static void breakStream() throws Exception {
    Map<String, Object> fault = Map.of("fault", Map.of("kind", "eof", "after_tokens", 2));
    StreamingChatModel model =
        OpenAiStreamingChatModel.builder()
            .baseUrl(URL)
            .apiKey(Cases.API_KEY)
            .modelName("sandbox-chat")
            .customParameters(Map.of("sandbox", fault))
            .build();
    List<String> pieces = new ArrayList<>();
    TokenStream answer = AiServices.create(StreamingAssistant.class, model).ask("WORDS:9");
    Cases.failure(Exception.class, () -> stream(answer, pieces));
    Cases.check(pieces.size() > 0, "the beginning came");
  }

  private static void test(
      String api,
      String name,
      BiFunction<String, String, ChatModel> model,
      BiFunction<String, String, StreamingChatModel> streaming)
      throws Exception {
    ChatModel held = model.apply(name, Cases.API_KEY);
    StreamingChatModel streamed = streaming.apply(name, Cases.API_KEY);
    Cases.test(
        api + ", held",
        () -> {
          String text = AiServices.create(Assistant.class, held).ask(Cases.EXACTLY);
          Cases.check(text.equals(Cases.SAID), text);
        });
    Cases.test(
        api + ", streamed",
        () -> {
          List<String> pieces = new ArrayList<>();
          StreamingAssistant assistant = AiServices.create(StreamingAssistant.class, streamed);
          ChatResponse whole = stream(assistant.ask(Cases.EXACTLY), pieces);
          Cases.checkSaid(pieces);
          Cases.check(whole.aiMessage().text().equals(Cases.SAID), whole);
          Cases.check(whole.tokenUsage().outputTokenCount() > 0, whole);
        });
    Cases.test(
        api + ", tool turn",
        () -> {
          Assistant assistant =
              AiServices.builder(Assistant.class).chatModel(held).tools(new Calculator()).build();
          Cases.checkMultiplied(assistant.ask(Cases.question("multiply")));
        });
    Cases.test(
        api + ", streamed tool turn",
        () -> {
          StreamingAssistant assistant =
              AiServices.builder(StreamingAssistant.class)
                  .streamingChatModel(streamed)
                  .tools(new Calculator())
                  .build();
          ChatResponse whole = stream(assistant.ask(Cases.question("multiply")), new ArrayList<>());
          Cases.checkMultiplied(whole.aiMessage().text());
        });
    Cases.test(
        api + ", structured output",
        () -> {
          Forecast forecast = AiServices.create(Forecaster.class, held).forecast("Good morning");
          Cases.checkForecast(forecast.city(), forecast.degrees(), forecast.sky());
        });
    Cases.test(
        api + ", error",
        () -> {
          Cases.failure(
              ModelNotFoundException.class,
              () -> model.apply("no-such-model", Cases.API_KEY).chat(Cases.EXACTLY));
          Cases.failure(
              AuthenticationException.class, () -> model.apply(name, Cases.WRONG_KEY).chat(Cases.EXACTLY));
        });
  }
}
