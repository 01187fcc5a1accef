//! The names of the gateway's metrics, for mappings that refer to them.

use super::named_enum;

named_enum! {
    /// A metric of the gateway.
    pub enum MetricName {
        HttpResponses = "reframe_http_responses_total",
        HttpRequestDuration = "reframe_http_request_duration_seconds",
        TurnsInFlight = "reframe_turns_in_flight",
        Turns = "reframe_turns_total",
        TurnDuration = "reframe_turn_duration_seconds",
        TurnFirstFrame = "reframe_turn_first_frame_seconds",
        Frames = "reframe_frames_total",
        FrameLatency = "reframe_frame_latency_seconds",
        BufferedBytes = "reframe_buffered_bytes",
        UnreadMembers = "reframe_upstream_unread_members_total",
        TurnFaults = "reframe_turn_faults_total",
        ClientDisconnects = "reframe_client_disconnects_total",
        ClientTimeouts = "reframe_client_timeouts_total",
        LimitsReached = "reframe_limits_reached_total",
        FrameViolations = "reframe_frame_violations_total",
        MalformedEvents = "reframe_upstream_malformed_events_total",
        MalformedExtras = "reframe_upstream_malformed_extras_total",
        LateEvents = "reframe_upstream_late_events_total",
        InlineBlocks = "reframe_inline_blocks_total",
        WorkersReady = "reframe_workers_ready",
        WorkerFailures = "reframe_worker_failures_total",
        WorkerGarbageLines = "reframe_worker_garbage_lines",
        LogLinesDropped = "reframe_log_lines_dropped_total",
        UsageRecordsDropped = "reframe_usage_records_dropped_total",
        LogFileLinesDropped = "reframe_log_file_lines_dropped_total",
        Conversions = "reframe_response_conversions_total",
        ConversionDuration = "reframe_response_conversion_duration_seconds",
        DroppedFields = "reframe_request_fields_dropped_total",
        Generation = "reframe_config_generation",
        Generations = "reframe_config_generations_in_memory",
        Reloads = "reframe_config_reloads_total",
        RejectedConfig = "reframe_config_rejected",
        Build = "reframe_build_info",
        OperationDuration = "gen_ai_client_operation_duration_seconds",
        TokenUsage = "gen_ai_client_token_usage",
        TimeToFirstToken = "gen_ai_server_time_to_first_token_seconds",
    }
}

impl MetricName {
    /// Its type in OpenMetrics.
    pub fn kind(self) -> &'static str {
        match self.name() {
            name if name.ends_with("_total") => "counter",
            name if name.ends_with("_info") => "info",
            name if name.ends_with("_seconds") || self == MetricName::TokenUsage => "histogram",
            _ => "gauge",
        }
    }
}

named_enum! {
    /// A counter that a static route can set to zero.
    pub enum ResettableMetric {
        InlineBlocks = "reframe_inline_blocks_total",
        Turns = "reframe_turns_total",
        TurnFaults = "reframe_turn_faults_total",
        Frames = "reframe_frames_total",
        HttpResponses = "reframe_http_responses_total",
    }
}
