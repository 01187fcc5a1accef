//! Unit tests of `server::limits`.

use super::*;

#[test]
fn a_client_takes_at_most_its_share_and_releases_it() {
    let slots = TurnSlots::default();
    let [first, second, third] = ["a", "b", "c"].map(|name| ClientId::Key(name.into()));
    assert_eq!(slots.take(&first, 3, 2), Ok(0));
    assert_eq!(slots.take(&first, 3, 2), Ok(1));
    assert_eq!(slots.take(&first, 3, 2), Err(LimitReached::StreamsPerClient(2)));
    assert_eq!(slots.take(&second, 3, 2), Ok(2));
    assert_eq!(slots.take(&third, 3, 2), Err(LimitReached::Streams(3)));
    slots.release(&first);
    assert_eq!(slots.take(&third, 3, 2), Ok(2));
    [&first, &second, &third].iter().for_each(|client| slots.release(client));
    let taken = slots.taken();
    assert_eq!((taken.all, taken.by_client.len()), (0, 0));
}

#[test]
fn a_client_is_an_ipv4_address_or_a_network_of_ipv6() {
    let client = |text: &str| ClientId::of_address(text.parse().unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
    assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    assert_eq!(client("192.0.2.1"), client("::ffff:192.0.2.1"));
    assert_eq!(client("2001:db8:1:2::1"), client("2001:db8:1:2:ffff::9"));
    assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
}
