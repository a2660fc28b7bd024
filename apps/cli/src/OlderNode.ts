import { WebSocket } from "ws"

/*
 * What the command line needs and Node has only since version 22. The packed command line loads this before itself, where something of it is
 * missing: see pack.mjs.
 */

const added: { WebSocket?: unknown } = globalThis
added.WebSocket ??= WebSocket

const urls: { parse?: (text: string, base?: string) => URL | null } = URL
urls.parse ??= (text, base) => (URL.canParse(text, base) ? new URL(text, base) : null)
