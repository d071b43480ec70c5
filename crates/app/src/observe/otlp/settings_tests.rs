use super::*;

fn read_of(variables: &[(&str, &str)]) -> Settings {
    let environment = Environment::of(variables.iter().copied());
    read(&Config::default(), &environment).unwrap().unwrap()
}

fn configured() -> Config {
    Config {
        otlp_endpoint: Some("http://of-the-file:4318/".into()),
        otlp_headers: Some(vec![("x-of-the-file".into(), "secret-1".into())]),
        ..Config::default()
    }
}

#[test]
fn without_an_address_nothing_is_exported() {
    let nothing = Config::default();
    assert!(read(&nothing, &Environment::default()).unwrap().is_none());
    for (name, value) in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ] {
        assert!(
            read(&configured(), &Environment::of([(name, value)]))
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn addresses_are_those_of_the_specification() {
    let all = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    for (variables, expected) in [
        (&[(all, "http://c:4318")][..], "http://c:4318/v1/traces"),
        (
            &[(all, "http://c:4318/base/")],
            "http://c:4318/base/v1/traces",
        ),
        (&[(all, "https://c/x?a=b")], "https://c/x/v1/traces?a=b"),
        (&[(traces, "http://t/as-it-is")], "http://t/as-it-is"),
        (&[(traces, "http://t/"), (all, "http://c")], "http://t/"),
    ] {
        assert_eq!(read_of(variables).url, expected);
    }
}

#[test]
fn headers_are_sent_only_to_their_own_address() {
    let with_headers = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret%202, x-b=2")];
    let settings = read(&configured(), &Environment::of(with_headers))
        .unwrap()
        .unwrap();
    assert_eq!(settings.url, "http://of-the-file:4318/v1/traces");
    assert!(settings.headers.contains("x-of-the-file") && !settings.headers.contains("x-key"));

    let mut variables = with_headers.to_vec();
    variables.push(("OTEL_EXPORTER_OTLP_ENDPOINT", "http://of-the-environment"));
    let settings = read(&configured(), &Environment::of(variables))
        .unwrap()
        .unwrap();
    assert_eq!(settings.url, "http://of-the-environment/v1/traces");
    assert!(settings.headers.contains("x-key") && settings.headers.contains("x-b"));
    assert!(!settings.headers.contains("x-of-the-file"));
    assert!(settings.headers.check("collector").is_ok());
    assert!(!format!("{settings:?}").contains("secret"), "{settings:?}");
}

#[test]
fn what_is_said_of_the_program_can_be_changed() {
    let settings = read_of(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=a,deployment.environment=t%C3%A9st",
        ),
        ("OTEL_SERVICE_NAME", "b"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
    ]);
    let of = |key: &str| {
        let found = settings.resource.iter().filter(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("service.name"), ["b"]);
    assert_eq!(of("deployment.environment"), ["tést"]);
    assert_eq!(settings.timeout, Duration::from_millis(250));
    assert!(!settings.content);
    assert_eq!(settings.protocol, Protocol::HttpJson);
    let binary = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ];
    assert_eq!(read_of(&binary).protocol, Protocol::HttpBinary);
}

#[test]
fn content_has_to_be_asked_for() {
    let content = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    for (configured_to, variable, expected) in [
        (None, None, false),
        (Some(true), None, true),
        (Some(true), Some("false"), false),
        (None, Some("true"), true),
    ] {
        let mut config = configured();
        config.otlp_content = configured_to;
        let environment = Environment::of(variable.map(|value| (content, value)));
        let settings = read(&config, &environment).unwrap().unwrap();
        assert_eq!(settings.content, expected);
    }
}

#[test]
fn errors_contain_no_values() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c");
    for (variable, value, expected) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "4318"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "secret-without-name",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/secret", "http/json"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "a=%ZZsecret",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "=secret",
            "OTEL_RESOURCE_ATTRIBUTES",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "localhost:4318",
            "http://",
        ),
    ] {
        let environment = Environment::of([endpoint, (variable, value)]);
        let error = read(&Config::default(), &environment).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
