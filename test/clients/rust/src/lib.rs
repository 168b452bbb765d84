//! What the Rust programs share: what they ask, where, and how each tells what came of its cases.

use std::env;
use std::pin::Pin;

use serde_json::{Value, json};

/// A key that the gateway does not know.
pub const WRONG_KEY: &str = "sk-sluice-wrong";
/// What the sandbox answers to `EXACTLY`, word for word.
pub const SAID: &str = "Hello from Sluice";
/// The directive that has the sandbox say `SAID`.
pub const EXACTLY: &str = "Reply with exactly: Hello from Sluice";
/// Has the sandbox call the tool multiply.
pub const QUESTION: &str = r#"TOOL:multiply {"one":6,"other":7}"#;

/// Where the gateway is, without `/v1`.
pub fn base_url() -> String {
    env::var("SLUICE_BASE_URL").expect("SLUICE_BASE_URL is set")
}

/// A key of the gateway's.
pub fn api_key() -> String {
    env::var("SLUICE_API_KEY").expect("SLUICE_API_KEY is set")
}

/// The schema of the arguments of the tool multiply.
pub fn multiply_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "one": { "type": "number" }, "other": { "type": "number" } },
        "required": ["one", "other"],
        "additionalProperties": false,
    })
}

/// What the tool does.
pub fn multiply(arguments: &Value) -> String {
    let factor = |name: &str| arguments[name].as_i64().expect("a factor is a number");
    (factor("one") * factor("other")).to_string()
}

/// A form that a structured answer has.
pub fn forecast_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "degrees": { "type": "number" },
            "sky": { "type": "string", "enum": ["clear", "grey"] },
        },
        "required": ["city", "degrees", "sky"],
        "additionalProperties": false,
    })
}

/// Checks a text that came in pieces.
pub fn assert_said(pieces: &[String]) {
    assert_eq!(pieces.concat(), SAID);
    let texts = pieces.iter().filter(|piece| !piece.is_empty());
    assert!(texts.count() > 1, "the text comes in more than one piece: {pieces:?}");
}

/// Checks what is said of the tool's result.
pub fn assert_multiplied(text: &str) {
    assert!(text.contains("42"), "text: {text}");
}

/// Checks a structured answer.
pub fn assert_forecast(text: &str) {
    let forecast: Value = serde_json::from_str(text).expect("a forecast is JSON");
    assert!(forecast["city"].is_string() && forecast["degrees"].is_number(), "forecast: {text}");
    assert!(["clear", "grey"].map(Value::from).contains(&forecast["sky"]), "forecast: {text}");
}

/// One thing that a client is tried at: it panics where it fails.
pub type Case = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the cases of one API, one after another: each prints a line of JSON.
pub async fn run_cases(api: &str, cases: Vec<(&str, Case)>) {
    for (kind, case) in cases {
        let detail = match tokio::spawn(case).await {
            Ok(()) => String::new(),
            Err(failed) => reason(failed),
        };
        println!("{}", line(&format!("{api}, {kind}"), &detail));
    }
}

/// The runner knows a case by how its line begins: with its name.
fn line(name: &str, detail: &str) -> String {
    format!(r#"{{"name":{},"ok":{},"detail":{}}}"#, json!(name), detail.is_empty(), json!(detail))
}

fn reason(failed: tokio::task::JoinError) -> String {
    let panic = failed.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
        .unwrap_or_else(|| "the case panicked".to_string())
}
