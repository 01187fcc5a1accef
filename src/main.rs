fn main() -> std::process::ExitCode {
    reframe::run()
}
