import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmdirSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The size for the databases of a few rounds. Memory is used only as far as the file system is filled. */
const roomBytes = 2 * 1024 ** 3

const mount = (options: string, folder: string): string | null => {
  const { error, status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder])
  return status === 0 ? null : (error?.message ?? String(stderr).trim())
}

/** A separate file system that a fault can make full. On Linux, only privileged users can mount one. */
export class SmallDisk {
  readonly folder: string
  readonly #atExit = (): void => this.close()

  private constructor(folder: string) {
    this.folder = folder
    process.once("exit", this.#atExit)
  }

  static in(parent: string): SmallDisk {
    const folder = join(parent, "disk")
    mkdirSync(folder)
    const trouble = mount(`size=${roomBytes},mode=0755`, folder)
    if (trouble !== null) throw new Error(`no file system can be mounted: ${trouble}`)
    return new SmallDisk(folder)
  }

  /** Why none can be had here; null: one can. */
  static whyNot(): string | null {
    const parent = mkdtempSync(join(tmpdir(), "tidegate-mount-"))
    try {
      SmallDisk.in(parent).close()
      rmdirSync(join(parent, "disk"))
      return null
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    } finally {
      spawnSync("rm", ["-rf", parent])
    }
  }

  /** Shrinks the file system to what is in use. */
  fill(): void {
    // Between the reading and the change, more may be used. Linux refuses a size below the used one.
    for (let left = 20; ; left--) {
      const { bfree, blocks, bsize } = statfsSync(this.folder)
      const trouble = mount(`remount,size=${(blocks - bfree) * bsize}`, this.folder)
      if (trouble === null) return
      if (left === 0) throw new Error(`the disk cannot be made full: ${trouble}`)
    }
  }

  /** It has room again. */
  relieve(): void {
    const trouble = mount(`remount,size=${roomBytes}`, this.folder)
    if (trouble !== null) throw new Error(`the disk cannot be given room: ${trouble}`)
  }

  close(): void {
    process.off("exit", this.#atExit)
    // A killed server may still hold a file. Then the file system is removed when the file is closed.
    spawnSync("umount", ["--lazy", this.folder])
  }
}
