from openai_cases import run_chat_cases, run_responses_cases

run_chat_cases()
for model in ("sandbox-chat", "sandbox-responses"):
    run_responses_cases(model)
