"""What of an environment is for our own agent."""

from handrail.cli.commands.chat import provider_variables, provider_variables_for


def test_keys_addresses_and_a_model_are_meant_and_nothing_else() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": " ", "HANDRAIL_MODEL": "openai:m", "AWS_SECRET": "s"}
    assert provider_variables(environ) == {"OPENAI_API_KEY": "k", "HANDRAIL_MODEL": "openai:m"}


def test_none_of_it_is_for_another_agent() -> None:
    environ = {"OPENAI_API_KEY": "k"}
    assert provider_variables_for("handrail", environ) == environ
    assert provider_variables_for("claude", environ) == {}
