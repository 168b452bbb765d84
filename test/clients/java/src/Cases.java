import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What the Java programs share: what they ask, where, and how each tells what came of its cases. */
final class Cases {
  static final String BASE_URL = System.getenv("SLUICE_BASE_URL");
  static final String API_KEY = System.getenv("SLUICE_API_KEY");
  static final String WRONG_KEY = "sk-sluice-wrong";

  /** What the sandbox answers to {@link #EXACTLY}, word for word. */
  static final String SAID = "Hello from Sluice";
  static final String EXACTLY = "Reply with exactly: " + SAID;

  /** Has the sandbox call a tool with two numbers, one and other. */
  static String question(String tool) {
    return "TOOL:" + tool + " {\"one\":6,\"other\":7}";
  }

  private static final ObjectMapper JSON = new ObjectMapper();

  private Cases() {}

  /** One thing that a client is tried at. */
  interface Run {
    void run() throws Exception;
  }

  /** Runs a case, and prints a line of JSON. */
  static void test(String name, Run run) throws JsonProcessingException {
    String detail = "";
    try {
      run.run();
    } catch (Throwable failed) {
      StringWriter trace = new StringWriter();
      failed.printStackTrace(new PrintWriter(trace));
      detail = trace.toString();
    }
    JsonNode line =
        JSON.createObjectNode().put("name", name).put("ok", detail.isEmpty()).put("detail", detail);
    System.out.println(JSON.writeValueAsString(line));
  }

  static void check(boolean holds, Object detail) {
    if (!holds) throw new AssertionError(detail);
  }

  /** Checks that a call fails, and returns its error. */
  static <E extends Throwable> E failure(Class<E> kind, Run call) {
    try {
      call.run();
    } catch (Throwable failed) {
      for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
        if (kind.isInstance(cause)) return kind.cast(cause);
      }
      throw new AssertionError("not the error that was expected", failed);
    }
    throw new AssertionError("the call succeeds");
  }

  /** Checks a text that came in pieces. */
  static void checkSaid(List<String> pieces) {
    List<String> texts = pieces.stream().filter(piece -> piece != null && !piece.isEmpty()).toList();
    check(String.join("", texts).equals(SAID), texts);
    check(texts.size() > 1, "the text comes in more than one piece: " + texts);
  }

  /** Checks what is said of the tool's result. */
  static void checkMultiplied(String text) {
    check(text.contains("42"), text);
  }

  /** Checks a structured answer. */
  static void checkForecast(String city, Double degrees, Object sky) {
    check(city != null && degrees != null, city + " " + degrees);
    check(Set.of("clear", "grey").contains(String.valueOf(sky)), sky);
  }

  static void checkForecast(String json) throws JsonProcessingException {
    Map<?, ?> forecast = JSON.readValue(json, Map.class);
    checkForecast((String) forecast.get("city"), ((Number) forecast.get("degrees")).doubleValue(), forecast.get("sky"));
  }
}
