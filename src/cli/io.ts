import type { Environment } from '../config/config.ts'

/** What a command may touch of its process. */
export type CommandIo = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  env: Environment
  cwd: string
}
