import type { Environment } from '../config/config.ts'

/** The parts of the process that a command may use. */
export type CommandIo = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  env: Environment
  cwd: string
}
