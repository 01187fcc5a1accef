//! The `reframe` binary.

fn main() -> std::process::ExitCode {
    reframe::run()
}
