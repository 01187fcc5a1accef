//! Unit tests of `server::acceptor`.

use super::*;

#[test]
fn the_backoff_doubles_up_to_a_second_and_a_burst_is_logged_once() {
    let mut now = Instant::now();
    let (mut backoff, mut burst) = (Backoff::none(), ErrorBurst::default());
    let mut pauses = Vec::new();
    let mut logged = 0;
    for _ in 0..10 {
        logged += u32::from(burst.begins(now));
        let pause = backoff.increase(now);
        now = backoff.until.unwrap();
        pauses.push(pause.as_millis());
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    assert_eq!(logged, 1);
    assert!(burst.begins(now + BURST_WINDOW * 2));
}
