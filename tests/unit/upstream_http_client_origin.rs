//! Unit tests of `upstream::http_client::origin`.

use super::*;

#[test]
fn a_request_has_the_path_that_the_url_standard_gives_it() {
    let base = BaseUrl::parse("https://Example.com:443/api/v1").unwrap();
    assert_eq!((base.origin.is_https(), base.origin.host().unwrap().to_str().unwrap()), (true, "example.com"));
    let paths = [
        "/chat/completions",
        "/models/gpt-4.1:generate?key=a%2Fb&alt=sse",
        "/models/a b/c",
        "/models/../other",
        "/models/%2e%2E/other",
        "/models/.hidden",
        "/models/ä?q='x'",
        "/a\\b#fragment",
        "/a?b?c",
        "",
    ];
    for path in paths {
        let url = Url::parse(&format!("https://example.com/api/v1{path}")).unwrap();
        let expected = &url[Position::BeforePath..Position::AfterQuery];
        assert_eq!(base.request_path(path).unwrap().as_str(), expected, "{path}");
    }
}

#[test]
fn connections_go_to_the_host_and_port_of_the_url() {
    let cases = [
        ("http://127.0.0.1:8080/v1", "127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("http://[::1]:8080", "[::1]:8080", "http://[::1]:8080/"),
        ("https://bücher.example", "xn--bcher-kva.example", "https://xn--bcher-kva.example/"),
    ];
    for (url, host, uri) in cases {
        let BaseUrl { origin, .. } = BaseUrl::parse(url).unwrap();
        assert_eq!(origin.host().unwrap().to_str().unwrap(), host);
        assert_eq!(origin.uri(PathAndQuery::from_static("/")).unwrap().to_string(), uri);
    }
}
