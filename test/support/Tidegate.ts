import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { withoutSettings } from "./GatewayProcess.ts"

const program = fileURLToPath(new URL("../../apps/gateway/src/tidegate.ts", import.meta.url))

/** Runs the command `tidegate` to its end. */
export const tidegate = (
  settings: Readonly<Record<string, string>>,
  ...words: ReadonlyArray<string>
): Promise<{ readonly code: number; readonly said: string; readonly complained: string }> =>
  new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [program, ...words],
      { env: { ...withoutSettings(), ...settings } },
      (_, said, complained) => resolve({ code: child.exitCode ?? -1, said, complained })
    )
  })
