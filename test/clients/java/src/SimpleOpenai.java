import com.fasterxml.jackson.annotation.JsonProperty;
import io.github.sashirestela.cleverclient.support.CleverClientException;
import io.github.sashirestela.openai.SimpleOpenAI;
import io.github.sashirestela.openai.common.ResponseFormat;
import io.github.sashirestela.openai.common.function.FunctionDef;
import io.github.sashirestela.openai.common.function.FunctionExecutor;
import io.github.sashirestela.openai.common.function.Functional;
import io.github.sashirestela.openai.common.tool.ToolCall;
import io.github.sashirestela.openai.domain.chat.Chat;
import io.github.sashirestela.openai.domain.chat.ChatMessage;
import io.github.sashirestela.openai.domain.chat.ChatMessage.ToolMessage;
import io.github.sashirestela.openai.domain.chat.ChatMessage.UserMessage;
import io.github.sashirestela.openai.domain.chat.ChatRequest;
import io.github.sashirestela.openai.exception.OpenAIException;
import io.github.sashirestela.openai.exception.OpenAIExceptionConverter;
import java.util.ArrayList;
import java.util.List;

/** Chat completions with simple-openai, which reads a stream line by line. */
final class SimpleOpenai {
  private static final SimpleOpenAI CLIENT = connect(Cases.API_KEY);
  private static final SimpleOpenAI STRANGER = connect(Cases.WRONG_KEY);

  /** The tool. */
  public static class Multiply implements Functional {
    @JsonProperty(required = true)
    public int one;

    @JsonProperty(required = true)
    public int other;

    @Override
    public Object execute() {
      return String.valueOf(one * other);
    }
  }

  public enum Sky {
    clear,
    grey
  }

  public static class Forecast {
    @JsonProperty(required = true)
    public String city;

    @JsonProperty(required = true)
    public double degrees;

    @JsonProperty(required = true)
    public Sky sky;
  }

  private static SimpleOpenAI connect(String key) {
    return SimpleOpenAI.builder().baseUrl(Cases.BASE_URL).apiKey(key).build();
  }

  private static ChatRequest.ChatRequestBuilder chat(String model, String text) {
    return ChatRequest.builder().model(model).message(UserMessage.of(text));
  }

  /** The pieces of a streamed text. */
  private static List<String> stream(SimpleOpenAI client, ChatRequest ask) {
    List<String> pieces = new ArrayList<>();
    client
        .chatCompletions()
        .createStream(ask)
        .join()
        .filter(chunk -> chunk.getChoices() != null && !chunk.getChoices().isEmpty())
        .forEach(chunk -> pieces.add(chunk.firstContent()));
    return pieces;
  }

  /** The error of a call that fails, which its own converter reads from the answer that its HTTP client met. */
  private static OpenAIException failure(Cases.Run call) {
    for (Throwable cause = Cases.failure(CleverClientException.class, call); cause != null; cause = cause.getCause()) {
      if (cause instanceof CleverClientException met && met.responseInfo().isPresent()) {
        return (OpenAIException) new OpenAIExceptionConverter().convertHttpException(met.responseInfo().get());
      }
    }
    throw new AssertionError("the error has no answer");
  }

  public static void main(String[] arguments) throws Exception {
    String model = "sandbox-chat";
    Cases.test(
        "chat, held",
        () -> {
          Chat answer = CLIENT.chatCompletions().create(chat(model, Cases.EXACTLY).build()).join();
          Cases.check(answer.firstContent().equals(Cases.SAID), answer);
          Cases.check(answer.getUsage().getCompletionTokens() > 0, answer);
        });
    Cases.test(
        "chat, streamed", () -> Cases.checkSaid(stream(CLIENT, chat(model, Cases.EXACTLY).build())));
    Cases.test(
        "chat, tool turn",
        () -> {
          FunctionExecutor tools = new FunctionExecutor();
          tools.enrollFunction(
              FunctionDef.builder()
                  .name("multiply")
                  .description("Multiplies two numbers")
                  .functionalClass(Multiply.class)
                  .strict(true)
                  .build());
          List<ChatMessage> messages = new ArrayList<>(List.of(UserMessage.of(Cases.question("multiply"))));
          ChatRequest ask =
              ChatRequest.builder().model(model).messages(messages).tools(tools.getToolFunctions()).build();
          ChatMessage.ResponseMessage asked = CLIENT.chatCompletions().create(ask).join().firstMessage();
          ToolCall call = asked.getToolCalls().get(0);
          messages.add(asked);
          messages.add(ToolMessage.of(tools.<String>execute(call.getFunction()), call.getId()));
          ChatRequest next =
              ChatRequest.builder().model(model).messages(messages).tools(tools.getToolFunctions()).build();
          Cases.checkMultiplied(String.join("", stream(CLIENT, next)));
        });
    Cases.test(
        "chat, structured output",
        () -> {
          ResponseFormat format =
              ResponseFormat.jsonSchema(
                  ResponseFormat.JsonSchema.builder().name("forecast").schemaClass(Forecast.class).build());
          ChatRequest ask = chat(model, "Good morning").responseFormat(format).build();
          Cases.checkForecast(CLIENT.chatCompletions().create(ask).join().firstContent());
        });
    Cases.test(
        "chat, error",
        () -> {
          ChatRequest unknown = chat("no-such-model", Cases.EXACTLY).build();
          OpenAIException missing = failure(() -> CLIENT.chatCompletions().create(unknown).join());
          Cases.check(missing instanceof OpenAIException.NotFoundException, missing);
          OpenAIException refused = failure(() -> stream(STRANGER, chat(model, Cases.EXACTLY).build()));
          Cases.check(refused instanceof OpenAIException.AuthenticationException, refused);
        });
    System.exit(0);
  }
}
