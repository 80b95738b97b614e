import { execFileSync } from 'node:child_process'
import { databaseOf } from '../../test/helpers/server-process.ts'

/** The PostgreSQL server of a working directory and its children. */
export async function serverProcesses(cwd: string): Promise<number[]> {
  const server = (await databaseOf(cwd)) as number
  const lines = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number))
  return [server, ...pairs.filter(([, parent]) => parent === server).map(([pid]) => pid as number)]
}

/** Sends a signal to a process that may have ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
