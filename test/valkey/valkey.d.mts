export function installValkey(): Promise<void>;
/** The path of the program. @throws Error where it is not installed. */
export function valkeyServer(): string;
