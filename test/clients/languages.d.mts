/** A program that uses one client. */
export interface ClientProgram {
  client: string;
  command: string[];
}
export const languageNames: readonly string[];
export function missingTool(name: string): string | undefined;
export function installClients(name: string): Promise<void>;
export function clientPrograms(name: string): ClientProgram[];
