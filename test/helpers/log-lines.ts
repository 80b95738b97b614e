import { once } from 'node:events'
import { type Agent, get } from 'node:http'
import { connect } from 'node:net'

/** Pipelines requests whose log lines are as long as lines get; `count` is a multiple of four. */
export async function fillLog(url: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  const head = `GET /${'x'.repeat(190)} HTTP/1.1\r\nHost: x\r\n`
  const requests = `${`${head}\r\n`.repeat(count / 4 - 1)}${head}Connection: close\r\n\r\n`
  const client = async (): Promise<void> => {
    const socket = connect(Number(port), hostname)
    socket.resume().write(requests)
    await once(socket, 'close')
  }
  await Promise.all(Array.from({ length: 4 }, client))
}

/** The body of a response. */
export async function ask(url: string, agent: Agent): Promise<string> {
  const [response] = await once(get(url, { agent }), 'response')
  let body = ''
  for await (const part of response) body += part
  return body
}
