import { Readable } from 'node:stream'
import { execute } from '../../src/cli/main.ts'
import type { Environment } from '../../src/config/reading.ts'

export type Said = { code: number; stdout: string; stderr: string }

/** Runs `cellkeep …` in this process, as a shell would with this environment, working directory and input. */
export const shell =
  (env: Environment, cwd: string) =>
  async (args: readonly string[], input = '', onOutput?: (part: string) => void): Promise<Said> => {
    let stdout = ''
    let stderr = ''
    const code = await execute(args, {
      stdin: Readable.from(input === '' ? [] : [input]),
      stdout: {
        write(text) {
          stdout += text
          onOutput?.(text)
        },
      },
      stderr: { write: (text) => (stderr += text) },
      env,
      cwd,
    })
    return { code, stdout, stderr }
  }
