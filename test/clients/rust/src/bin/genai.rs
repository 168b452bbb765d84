//! Chat completions, responses and messages with genai, which speaks each as its vendor's own adapter does.

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, JsonSpec, Tool, ToolResponse};
use genai::resolver::{AuthData, Endpoint, Error, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use sluice_clients::*;

fn connect(adapter: AdapterKind, key: String) -> Client {
    let resolver =
        ServiceTargetResolver::from_resolver_fn(move |target: ServiceTarget| -> Result<ServiceTarget, Error> {
            Ok(ServiceTarget {
                endpoint: Endpoint::from_owned(format!("{}/v1/", base_url())),
                auth: AuthData::from_single(key.clone()),
                model: ModelIden::new(adapter, target.model.model_name),
            })
        });
    Client::builder().with_service_target_resolver(resolver).build().expect("a client")
}

fn client(adapter: AdapterKind) -> Client {
    connect(adapter, api_key())
}

async fn held(adapter: AdapterKind, model: &str) {
    let answer = client(adapter).exec_chat(model, ChatRequest::from_user(EXACTLY), None).await.unwrap();
    assert_eq!(answer.first_text(), Some(SAID));
    assert!(answer.usage.completion_tokens.is_some_and(|count| count > 0), "usage: {:?}", answer.usage);
}

async fn streamed(adapter: AdapterKind, model: &str) {
    let options = ChatOptions::default().with_capture_usage(true);
    let ask = ChatRequest::from_user(EXACTLY);
    let mut stream = client(adapter).exec_chat_stream(model, ask, Some(&options)).await.unwrap().stream;
    let mut pieces = Vec::new();
    let mut usage = None;
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ChatStreamEvent::Chunk(chunk) => pieces.push(chunk.content),
            ChatStreamEvent::End(end) => usage = end.captured_usage,
            _ => {}
        }
    }
    assert_said(&pieces);
    let counted = usage.and_then(|usage| usage.completion_tokens);
    assert!(counted.is_some_and(|count| count > 0), "counted: {counted:?}");
}

async fn tool_turn(adapter: AdapterKind, model: &str) {
    // Without a description: the client writes null for it.
    let tool = Tool::new("multiply").with_schema(multiply_schema());
    let ask = ChatRequest::from_user(QUESTION).with_tools(vec![tool]);
    let calls = client(adapter).exec_chat(model, ask.clone(), None).await.unwrap().into_tool_calls();
    assert_eq!(calls.len(), 1, "calls: {calls:?}");
    let result = ToolResponse::new(calls[0].call_id.clone(), multiply(&calls[0].fn_arguments));
    let next = ask.append_message(calls).append_message(result);
    assert_multiplied(client(adapter).exec_chat(model, next, None).await.unwrap().first_text().expect("text"));
}

async fn structured_output(adapter: AdapterKind, model: &str) {
    let options = ChatOptions::default().with_response_format(JsonSpec::new("forecast", forecast_schema()));
    let ask = ChatRequest::from_user("Good morning");
    let answer = client(adapter).exec_chat(model, ask, Some(&options)).await.unwrap();
    assert_forecast(answer.first_text().expect("text"));
}

async fn error(adapter: AdapterKind, model: &str) {
    let ask = ChatRequest::from_user(EXACTLY);
    assert_error(client(adapter).exec_chat("no-such-model", ask.clone(), None).await, 404);
    assert_error(connect(adapter, WRONG_KEY.to_string()).exec_chat(model, ask, None).await, 401);
}

fn assert_error<Answer: std::fmt::Debug>(outcome: genai::Result<Answer>, status: u16) {
    let failed = outcome.expect_err("the call fails");
    let genai::Error::WebModelCall { webc_error, .. } = &failed else { panic!("error: {failed:?}") };
    assert_eq!(webc_error.status().map(|status| status.as_u16()), Some(status), "error: {failed:?}");
}

#[tokio::main]
async fn main() {
    let apis = [
        ("chat", AdapterKind::OpenAI, "sandbox-chat"),
        ("responses of sandbox-chat", AdapterKind::OpenAIResp, "sandbox-chat"),
        ("responses of sandbox-responses", AdapterKind::OpenAIResp, "sandbox-responses"),
        ("messages", AdapterKind::Anthropic, "sandbox-chat"),
        // A reasoning model's thoughts are not shown to a client that does not ask for them.
        ("messages of a reasoning model", AdapterKind::Anthropic, "sandbox-reasoning"),
    ];
    for (api, adapter, model) in apis {
        let cases: Vec<(&str, Case)> = vec![
            ("held", Box::pin(held(adapter, model))),
            ("streamed", Box::pin(streamed(adapter, model))),
            ("tool turn", Box::pin(tool_turn(adapter, model))),
            ("structured output", Box::pin(structured_output(adapter, model))),
            ("error", Box::pin(error(adapter, model))),
        ];
        run_cases(api, cases).await;
    }
}
