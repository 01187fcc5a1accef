fn main() -> std::process::ExitCode {
    reframe::cli::run()
}
