//! Chat completions and responses with async-openai, whose types take nothing that OpenAI's document does not allow.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{ChatCompletionMessageToolCalls, CreateChatCompletionRequest};
use async_openai::types::responses::{CreateResponse, OutputItem, ResponseStreamEvent};
use futures::StreamExt;
use serde_json::{Value, from_str, from_value, json, to_value};
use sluice_clients::*;

fn connect(key: &str) -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(format!("{}/v1", base_url())).with_api_key(key))
}

fn client() -> Client<OpenAIConfig> {
    connect(&api_key())
}

fn assert_error(failed: OpenAIError, status: u16, code: &str) {
    let OpenAIError::ApiError(error) = failed else { panic!("error: {failed:?}") };
    assert_eq!(error.status_code.as_u16(), status, "error: {error:?}");
    assert_eq!(error.api_error.code.as_deref(), Some(code), "error: {error:?}");
}

fn chat(messages: Value, more: Value) -> CreateChatCompletionRequest {
    let mut ask = json!({ "model": "sandbox-chat", "messages": messages });
    for (name, value) in more.as_object().expect("fields") {
        ask[name] = value.clone();
    }
    from_value(ask).expect("the client knows the request")
}

fn user(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

async fn chat_held() {
    let answer = client().chat().create(chat(user(EXACTLY), json!({}))).await.unwrap();
    assert_eq!(answer.choices[0].message.content.as_deref(), Some(SAID));
    assert!(answer.usage.expect("usage").completion_tokens > 0);
}

async fn chat_streamed() {
    let ask = chat(user(EXACTLY), json!({ "stream_options": { "include_usage": true } }));
    let mut stream = client().chat().create_stream(ask).await.unwrap();
    let mut pieces = Vec::new();
    let mut counted = 0;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.unwrap();
        pieces.extend(chunk.choices.iter().filter_map(|choice| choice.delta.content.clone()));
        counted = chunk.usage.map_or(counted, |usage| usage.completion_tokens);
    }
    assert_said(&pieces);
    assert!(counted > 0);
}

async fn chat_tool_turn() {
    let function = json!({
        "name": "multiply",
        "description": "Multiplies two numbers",
        "parameters": multiply_schema(),
        "strict": true,
    });
    let tools = json!({ "tools": [{ "type": "function", "function": function }] });
    let first = client().chat().create(chat(user(QUESTION), tools.clone())).await.unwrap();
    let asked = &first.choices[0].message;
    let Some([ChatCompletionMessageToolCalls::Function(call)]) = asked.tool_calls.as_deref() else {
        panic!("calls: {asked:?}");
    };
    let output = multiply(&from_str(&call.function.arguments).unwrap());
    let mut messages = user(QUESTION);
    messages.as_array_mut().expect("messages").extend([
        json!({ "role": "assistant", "tool_calls": asked.tool_calls }),
        json!({ "role": "tool", "tool_call_id": call.id, "content": output }),
    ]);
    let answer = client().chat().create(chat(messages, tools)).await.unwrap();
    assert_multiplied(answer.choices[0].message.content.as_deref().expect("text"));
}

async fn chat_structured_output() {
    let json_schema = json!({ "name": "forecast", "strict": true, "schema": forecast_schema() });
    let format = json!({ "response_format": { "type": "json_schema", "json_schema": json_schema } });
    let answer = client().chat().create(chat(user("Good morning"), format)).await.unwrap();
    assert_forecast(answer.choices[0].message.content.as_deref().expect("text"));
}

async fn chat_error() {
    let unknown = chat(user(EXACTLY), json!({ "model": "no-such-model" }));
    assert_error(client().chat().create(unknown).await.unwrap_err(), 404, "model_not_found");
    let refused = connect(WRONG_KEY).chat().create(chat(user(EXACTLY), json!({}))).await;
    assert_error(refused.unwrap_err(), 401, "invalid_api_key");
}

fn response(model: &str, input: Value, more: Value) -> CreateResponse {
    let mut ask = json!({ "model": model, "input": input });
    for (name, value) in more.as_object().expect("fields") {
        ask[name] = value.clone();
    }
    from_value(ask).expect("the client knows the request")
}

async fn held(model: &str) {
    let answer = client().responses().create(response(model, json!(EXACTLY), json!({}))).await.unwrap();
    assert_eq!(answer.output_text().as_deref(), Some(SAID));
    assert!(answer.usage.expect("usage").output_tokens > 0);
}

async fn streamed(model: &str) {
    let ask = response(model, json!(EXACTLY), json!({}));
    let mut stream = client().responses().create_stream(ask).await.unwrap();
    let mut pieces = Vec::new();
    let mut completed = false;
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        completed = matches!(event, ResponseStreamEvent::ResponseCompleted(_));
        if let ResponseStreamEvent::ResponseOutputTextDelta(event) = event {
            pieces.push(event.delta);
        }
    }
    assert_said(&pieces);
    assert!(completed, "the last event says that the response is completed");
}

async fn tool_turn(model: &str) {
    let tool = json!({ "type": "function", "name": "multiply", "parameters": multiply_schema(), "strict": true });
    let tools = json!({ "tools": [tool] });
    let first = client().responses().create(response(model, json!(QUESTION), tools.clone())).await.unwrap();
    let call = first.output.iter().find_map(|item| match item {
        OutputItem::FunctionCall(call) => Some(call),
        _ => None,
    });
    let call = call.unwrap_or_else(|| panic!("no call: {:?}", first.output));
    let output = multiply(&from_str(&call.arguments).unwrap());
    let mut input = vec![json!({ "role": "user", "content": QUESTION })];
    input.extend(first.output.iter().map(|item| to_value(item).unwrap()));
    input.push(json!({ "type": "function_call_output", "call_id": call.call_id, "output": output }));
    let answer = client().responses().create(response(model, json!(input), tools)).await.unwrap();
    assert_multiplied(&answer.output_text().expect("text"));
}

async fn structured_output(model: &str) {
    let format = json!({ "type": "json_schema", "name": "forecast", "strict": true, "schema": forecast_schema() });
    let ask = response(model, json!("Good morning"), json!({ "text": { "format": format } }));
    assert_forecast(&client().responses().create(ask).await.unwrap().output_text().expect("text"));
}

async fn error(model: &str) {
    let unknown = response("no-such-model", json!(EXACTLY), json!({}));
    assert_error(client().responses().create(unknown).await.unwrap_err(), 404, "model_not_found");
    let refused = connect(WRONG_KEY).responses().create(response(model, json!(EXACTLY), json!({}))).await;
    assert_error(refused.unwrap_err(), 401, "invalid_api_key");
}

#[tokio::main]
async fn main() {
    let cases: Vec<(&str, Case)> = vec![
        ("held", Box::pin(chat_held())),
        ("streamed", Box::pin(chat_streamed())),
        ("tool turn", Box::pin(chat_tool_turn())),
        ("structured output", Box::pin(chat_structured_output())),
        ("error", Box::pin(chat_error())),
    ];
    run_cases("chat", cases).await;
    for model in ["sandbox-chat", "sandbox-responses"] {
        let cases: Vec<(&str, Case)> = vec![
            ("held", Box::pin(held(model))),
            ("streamed", Box::pin(streamed(model))),
            ("tool turn", Box::pin(tool_turn(model))),
            ("structured output", Box::pin(structured_output(model))),
            ("error", Box::pin(error(model))),
        ];
        run_cases(&format!("responses of {model}"), cases).await;
    }
}
