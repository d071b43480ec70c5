//! Models behind a proxy of the environment.

use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place};

/// Asks a model at an unresolvable host name, with these variables.
async fn asked(variables: &[(&str, &str)]) -> Done {
    let mut place = Place::new()
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", "http://model.invalid/v1");
    for (name, value) in variables {
        place = place.with_variable(name, value);
    }
    let model = "openai/gpt-4o-mini";
    place.run(["ask", "--no-tools", "-m", model, "Hi"]).await
}

#[tokio::test]
async fn every_proxy_variable_is_used() {
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let proxy = FakeModel::start().await.unwrap();
        proxy.answer(Answer::openai_chat([Say::text("By a detour.")]));
        let done = asked(&[(variable, &proxy.base_url())]).await;
        let said = (done.code, done.stdout.as_str());
        assert_eq!(said, (0, "By a detour.\n"), "{variable}: {done}");
    }
}
