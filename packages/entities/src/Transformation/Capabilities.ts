import { Isolation, runtime } from "@tidegate/model/Transformation"
import type { TransformationCapabilities } from "@tidegate/model/TransformationRun"
import { largestEnv, maxVariables } from "@tidegate/resources/Transformation"
import { callLimits, globals } from "@tidegate/sandbox/CallLimits"

/** What code may use in this version of the sandbox, and its limits. */
export const capabilities: TransformationCapabilities = {
  runtime,
  runtimes: [runtime],
  handlers: ["transform"],
  isolations: Isolation.literals,
  globals,
  limits: {
    time_ms: callLimits.ms,
    memory_bytes: callLimits.memoryMib * 1_048_576,
    code_bytes: callLimits.codeBytes,
    variables: maxVariables,
    variables_bytes: largestEnv,
    output_bytes: callLimits.outputBytes,
    body_values: callLimits.values,
    body_depth: callLimits.depth,
    headers: callLimits.headers,
    headers_bytes: callLimits.headersBytes,
    header_name_bytes: callLimits.headerNameBytes,
    header_value_bytes: callLimits.headerValueBytes,
    path_bytes: callLimits.pathBytes,
    query_bytes: callLimits.queryBytes,
    query_values: callLimits.queryValues,
    log_lines: callLimits.logLines,
    log_line_bytes: callLimits.logLineBytes
  }
}
