import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { withoutSettings } from "./GatewayProcess.ts"

const program = fileURLToPath(new URL("../../apps/gateway/src/admin.ts", import.meta.url))

/** Runs a command of `npm run admin` to its end. */
export const admin = (
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
