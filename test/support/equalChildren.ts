import { syncBuiltinESMExports } from "node:module"
import os from "node:os"

/**
 * Loaded into a gateway's process before its program (`--import`): the sandbox's children compete as equals. They give way to all
 * else, which on a machine that is busy with other work leaves them next to nothing of it, and tests are about something else.
 */
os.setPriority = () => {}
syncBuiltinESMExports()
