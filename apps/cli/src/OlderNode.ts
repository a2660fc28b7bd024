import { WebSocket } from "ws"

/*
 * Features that the command line needs and that Node has only since version 22. The packed command line loads this file first, if one of them
 * is missing: see apps/package/bin/tidegate.js.
 */

const added: { WebSocket?: unknown } = globalThis
added.WebSocket ??= WebSocket

const urls: { parse?: (text: string, base?: string) => URL | null } = URL
urls.parse ??= (text, base) => (URL.canParse(text, base) ? new URL(text, base) : null)
