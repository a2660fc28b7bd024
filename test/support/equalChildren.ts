import { syncBuiltinESMExports } from "node:module"
import os from "node:os"

/**
 * Loaded into a gateway's process before its program (`--import`). It disables the low priority of the sandbox's child processes.
 * On a busy machine they would get almost no processor time, and tests are not about that.
 */
os.setPriority = () => {}
syncBuiltinESMExports()
