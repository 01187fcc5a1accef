//! Unit tests of `server::rate_limits`.

use super::*;

fn client(name: &str) -> ClientId {
    ClientId::Key(name.into())
}

#[test]
fn a_client_may_use_its_limit_at_once_and_no_more() {
    let rates = RateLimits::default();
    let take = |name: &str| rates.take(Counted::Requests, 2, &client(name), 1);
    assert_eq!(take("a").map(|state| state.remaining).ok(), Some(1));
    assert_eq!(take("a").map(|state| state.remaining).ok(), Some(0));
    let exceeded = take("a").err().unwrap();
    assert_eq!((exceeded.fault.status(), exceeded.state.remaining), (429, 0));
    assert!((1..=31).contains(&exceeded.fault.retry_after.unwrap()), "{:?}", exceeded.fault);
    let reset = exceeded.state.reset.as_secs();
    assert!((31..=60).contains(&reset), "until all is free again: {reset}");
    assert!(take("b").is_ok(), "each client has its own");
}

#[test]
fn what_is_left_is_reported_also_if_it_is_not_enough() {
    let rates = RateLimits::default();
    assert!(rates.take(Counted::Tokens, 100, &client("a"), 60).is_ok());
    let exceeded = rates.take(Counted::Tokens, 100, &client("a"), 50).err().unwrap();
    assert!((39..50).contains(&exceeded.state.remaining), "{:?}", exceeded.state);
    assert!((7..=36).contains(&exceeded.state.reset.as_secs()), "{:?}", exceeded.state);
}

#[test]
fn tokens_of_a_response_are_charged_as_far_as_there_are_any() {
    let rates = RateLimits::default();
    let a = client("a");
    assert!(rates.take(Counted::Tokens, 100, &a, 10).is_ok());
    rates.charge(Counted::Tokens, 100, &a, 1000);
    assert!(rates.take(Counted::Tokens, 100, &a, 50).is_err());
    assert!(rates.take(Counted::Tokens, 100, &client("b"), 1000).is_ok(), "one request may use all");
}

#[test]
fn durations_are_written_as_clients_read_them() {
    let texts = [0, 20, 1_000, 59_000, 360_000, 61_500].map(|ms| duration_text(Duration::from_millis(ms)));
    assert_eq!(texts, ["0ms", "20ms", "1s", "59s", "6m0s", "1m1s"]);
}
