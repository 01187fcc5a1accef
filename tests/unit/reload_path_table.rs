//! Unit tests of `reload::path_table`.

use super::*;

struct TestTable<'p>(PathTable, Vec<&'p str>);

impl<'p> TestTable<'p> {
    fn new(paths: &[&'p str]) -> TestTable<'p> {
        let mut all = Paths::default();
        paths.iter().enumerate().for_each(|(at, path)| all.add(path, Target::Route(at)));
        let literal = vec![("POST", all.literal())];
        TestTable(
            PathTable { by_method: Vec::new(), all: all.build(&mut Vec::new()).unwrap(), literal },
            paths.to_vec(),
        )
    }

    /// The paths that are found for `requested`.
    async fn find(&self, requested: &str) -> Vec<&'p str> {
        let found = self.0.find("POST", &requested.parse().unwrap()).await;
        (0..self.1.len()).filter(|at| found.contains(&Target::Route(*at))).map(|at| self.1[at]).collect()
    }
}

#[tokio::test]
async fn a_literal_path_is_found_as_it_is_written() {
    let paths = ["/", "/v1/a", "/v1/a/", "/v1//a", "/v1/a%20b", "/v1/a:b", "/v1/*", "/v1/(a|b)+"];
    let table = TestTable::new(&paths);
    for path in paths {
        assert_eq!(table.find(path).await, [path]);
    }
    for unknown in ["/v1", "/v1/", "//v1/a", "/v1/a/b", "/v1/A", "/v1/%61", "/v1/a%20b/", "/v1/a:", "/v1/x", "/v1/aa"] {
        assert!(table.find(unknown).await.is_empty(), "{unknown}");
    }
    assert_eq!(table.find("/v1/a?b=/v1//a").await, ["/v1/a"]);
}

#[tokio::test]
async fn a_parameter_is_not_empty_and_ends_at_a_slash_unless_it_is_the_end() {
    let paths = ["/models/{model}", "/models/{model}:stream", "/model/{id}/converse", "/models/list"];
    let table = TestTable::new(&paths);
    for (requested, expected) in [
        ("/models/a", "/models/{model}"),
        ("/models/vendor/a%2Fb", "/models/{model}"),
        ("/models/list", "/models/list"),
        ("/models/lis", "/models/{model}"),
        ("/models/a:stream", "/models/{model}:stream"),
        ("/models/a:8b:stream", "/models/{model}:stream"),
        ("/models/:stream", "/models/{model}"),
        ("/models/vendor/a:stream", "/models/{model}"),
        ("/models/a:streams", "/models/{model}"),
        ("/model/a.b/converse", "/model/{id}/converse"),
    ] {
        assert_eq!(table.find(requested).await, [expected], "{requested}");
    }
    for unknown in ["/models", "/models/", "/model/converse", "/model//converse", "/model/a/b/converse", "/x/models/a"]
    {
        assert!(table.find(unknown).await.is_empty(), "{unknown}");
    }
}

#[tokio::test]
async fn one_path_has_several_targets_and_the_names_of_parameters_do_not_matter() {
    let paths = ["/a/{x}", "/a/{y}", "/b", "/b"];
    let table = TestTable::new(&paths);
    assert_eq!(table.find("/a/1").await, ["/a/{x}", "/a/{y}"]);
    assert_eq!(table.find("/b").await, ["/b", "/b"]);
}

/// poem moves a regular expression to the shorter literal when it splits the text before it.
#[tokio::test]
async fn paths_with_parameters_may_begin_alike_in_any_order() {
    let paths = ["/v1/models/{model}:verb", "/v1/mods/{mod}:verb", "/v1/m", "/v1/messages", "/{any}:verb"];
    for rotation in 0..paths.len() {
        let mut paths = paths;
        paths.rotate_left(rotation);
        let table = TestTable::new(&paths);
        assert_eq!(table.find("/v1/models/a:verb").await, ["/v1/models/{model}:verb"]);
        assert_eq!(table.find("/v1/mods/a:verb").await, ["/v1/mods/{mod}:verb"]);
        assert_eq!(table.find("/v1/messages").await, ["/v1/messages"]);
        assert_eq!(table.find("/a:verb").await, ["/{any}:verb"]);
        assert!(table.find("/v1/ma:verb").await.is_empty());
    }
}
