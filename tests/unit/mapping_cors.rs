use super::*;

fn cors(origins: &[&str]) -> Cors {
    let origins = origins.iter().map(|origin| Origin(normalized(origin).unwrap_or_else(|| (*origin).to_owned())));
    Cors {
        origins: List(origins.collect()),
        headers: List::default(),
        expose: List::default(),
        max_age: TimeLimit(None),
    }
}

#[test]
fn origins_are_compared_by_scheme_host_and_port() {
    let cors = cors(&["https://App.example", "https://other.example:8443/"]);
    for allowed in
        ["https://app.example", "HTTPS://APP.EXAMPLE/", "https://app.example:443", "https://other.example:8443"]
    {
        assert!(cors.allows(allowed), "{allowed}");
    }
    for other in [
        "http://app.example",
        "https://app.example:8443",
        "https://other.example",
        "https://app.example.evil.example",
        "https://evil.example/app.example",
        "null",
        "",
    ] {
        assert!(!cors.allows(other), "{other}");
    }
}

#[test]
fn local_origins_may_have_any_port() {
    let cors = cors(&["http://localhost:3000", "http://127.0.0.1"]);
    assert!(
        cors.allows("http://localhost:5173") && cors.allows("http://localhost") && cors.allows("http://127.0.0.1:1")
    );
    assert!(!cors.allows("https://localhost:3000") && !cors.allows("http://localhost.evil.example"));
}

#[test]
fn origins_with_a_scheme_of_their_own_are_compared_without_a_path() {
    let cors = cors(&["app://obsidian.md", "capacitor://localhost"]);
    assert!(cors.allows("app://obsidian.md") && cors.allows("app://obsidian.md/index.html"));
    assert!(cors.allows("capacitor://localhost:80"));
    assert!(!cors.allows("app://other.md") && !cors.allows("capacitor://localhost.evil.example"));
}

#[test]
fn all_origins_can_be_allowed() {
    assert!(cors(&["*"]).allows("https://anything.example") && cors(&["*"]).allows("null"));
}
