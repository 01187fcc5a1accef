use super::*;

#[test]
fn samples_are_read_with_escaped_labels() {
    let read = sample(r#"a_bucket{file="x \"y\"\\",le="0.5"} 7"#).unwrap();
    let expected = vec![("file", r#"x \"y\"\\"#.to_owned()), ("le", "0.5".to_owned())];
    assert_eq!((read.name, read.labels, read.value), ("a_bucket", expected, 7.0));
    let plain = sample("a 1.5").unwrap();
    assert_eq!((plain.name, plain.labels.len(), plain.value), ("a", 0, 1.5));
    assert!(sample("# TYPE a counter").is_none());
}

#[test]
fn metrics_are_json_by_name() {
    let tree = as_tree("# TYPE a counter\na_total{b=\"c\"} 2\na_total{b=\"d\"} 3\ne 0.25\n# EOF\n");
    let expected = r#"{"a_total":[{"labels":{"b":"c"},"value":2},{"labels":{"b":"d"},"value":3}],"e":[{"labels":{},"value":0.25}]}"#;
    assert_eq!(tree.to_json(), expected);
}

#[test]
fn numbers_have_no_digits_of_a_multiplication() {
    assert_eq!([0.07 * 1000.0, 2.0, 0.012_5 * 1000.0, 0.0].map(shown), ["70", "2", "12.5", "0"]);
}
