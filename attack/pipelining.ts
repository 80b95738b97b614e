import { type Attack, crowd, get, strayBearer } from './attack.ts'

const connections = 40
const requests = Buffer.from(
  Array.from({ length: 500 }, () => get('/api/rpc?method=account_verify&id=1', strayBearer())).join(''),
)

export const pipelining: Attack = {
  name: `${connections} connections pipeline calls without end and read nothing`,
  run: async (target, over) => {
    let written = 0
    const cut = await crowd(target, connections, over, (socket) => {
      socket.pause()
      const pour = (): void => {
        do written += 500
        while (socket.write(requests))
      }
      socket.on('drain', pour)
      pour()
    })
    return `${written} requests written, ${cut} connections cut`
  },
}
