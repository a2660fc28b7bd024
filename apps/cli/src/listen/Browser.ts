import { spawn } from "node:child_process"

/** Opens a URL in the browser of this machine; resolves to false if there is none. */
export const openInBrowser = (url: string): Promise<boolean> => {
  const chosen = process.env["BROWSER"]
  const [program, ...words] =
    chosen !== undefined && chosen !== ""
      ? [chosen]
      : process.platform === "darwin"
        ? ["open"]
        : process.platform === "win32"
          ? ["rundll32", "url.dll,FileProtocolHandler"]
          : ["xdg-open"]
  return new Promise((resolve) => {
    const child = spawn(program, [...words, url], { stdio: "ignore", detached: true })
    child.once("error", () => resolve(false))
    child.once("spawn", () => {
      child.unref()
      resolve(true)
    })
  })
}
